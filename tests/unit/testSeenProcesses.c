/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/iocFinder.h */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "watch/iocFinder.h"

static void testOneProcess(void)
{
    ebpfMonSeenProcesses *seen = ebpfMonSeenProcessesNew();
    ebpfMonSeenProcess *p;

    testDiag("one process");
    testOk(!ebpfMonSeenProcessesFind(seen, 7), "it was not seen");
    p = ebpfMonSeenProcessesGet(seen, 7, 100, 5);
    testOk(p->pid == 7 && p->start == 100 && p->seen == 5 && !p->looked && !p->asides, "it is seen for the first time");
    p->asides = 2;
    p = ebpfMonSeenProcessesGet(seen, 7, 100, 6);
    testOk(p->seen == 5 && p->asides == 2 && ebpfMonSeenProcessesFind(seen, 7) == p, "what is known of it stays");
    p = ebpfMonSeenProcessesGet(seen, 7, 101, 8);
    testOk(p->seen == 8 && !p->asides, "another process with the same pid is a new one");
    ebpfMonSeenProcessesFree(seen);
}

/* A thread of the kernel has pid 14 for ever; pids are given again after some 32768, or 4 million. */
static void testSamePlace(void)
{
    static const pid_t pids[] = { 14, 14 + 8192, 14 + 16384, 14 + 65536 };
    enum { COUNT = sizeof(pids) / sizeof(pids[0]) };
    ebpfMonSeenProcesses *seen = ebpfMonSeenProcessesNew();
    int kept = 1;

    testDiag("processes whose pids have the same last bits, in each scan");
    for (uint64_t now = 1; now < 10; now++)
        for (int i = 0; i < COUNT; i++)
            kept &= ebpfMonSeenProcessesGet(seen, pids[i], 100, now)->seen == 1;
    testOk(kept, "they do not displace each other");
    ebpfMonSeenProcessesFree(seen);
}

static void testManyEnd(void)
{
    ebpfMonSeenProcesses *seen = ebpfMonSeenProcessesNew();
    int kept = 1;

    testDiag("processes that end, and one that stays");
    for (uint64_t now = 1; now < 40; now++) {
        ebpfMonSeenProcess *p = ebpfMonSeenProcessesGet(seen, 14, 100, now);

        kept &= p->seen == 1;
        p->looked = now;
        ebpfMonSeenProcessesGet(seen, (pid_t)(14 + 8192 * now), 100, now);
    }
    testOk(kept, "the one that is looked at keeps its place");
    ebpfMonSeenProcessesFree(seen);
}

MAIN(testSeenProcesses)
{
    testPlan(6);
    testOneProcess();
    testSamePlace();
    testManyEnd();
    return testDone();
}
