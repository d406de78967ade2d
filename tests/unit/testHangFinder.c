/* SPDX-License-Identifier: BSD-3-Clause */
/* health/hangs.h: which thread hangs, which one only waits for a thread that hangs, and the lines about it. The
 * test invents the threads. */
#include <stdio.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "health/hangs.h"
#include "targetTest.h"

#define NOW (1000 * 1000000000ull)
#define S   1000000000ull
#define PID 77

/* The state of each thread. The index is its tid, from 1. */
static const char *doing[10];
static uint64_t released;
static unsigned stacksRead, unread; /* this number of stacks will not be read in time */
static uint64_t saved; /* the register 1 that the innermost frame has saved */

static int readThread(pid_t pid, pid_t tid, char name[16], char *what, size_t size)
{
    if (pid != PID || !doing[tid])
        return -1;
    snprintf(name, 16, "thread%d", (int)tid);
    snprintf(what, size, "%s", doing[tid]);
    return 0;
}

static void readKernelStack(pid_t pid, pid_t tid, char *text, size_t size)
{
    snprintf(text, size, "schedule < wait_%d_%d", (int)pid, (int)tid);
}

static unsigned readStack(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX])
{
    stacksRead++;
    if (unread) {
        unread--;
        return 0;
    }
    memset(frame, 0, 3 * sizeof(*frame));
    snprintf(frame[0].name, sizeof(frame[0].name), "readValue");
    snprintf(frame[1].name, sizeof(frame[1].name), "process");
    snprintf(frame[2].file, sizeof(frame[2].file), "libdbCore.so");
    frame[0].saved[1] = saved;
    return 3;
}

/* Of the records of the catalogue; 0: it cannot be read. */
static uint64_t lockSetOf;

static uint64_t readLockSet(pid_t pid, uint64_t lset)
{
    return pid == PID && lset >= TARGETTEST_ADDR(0) ? lockSetOf : 0;
}

static uint64_t getReleased(uint32_t tgid, uint64_t lockSet)
{
    return tgid == PID && lockSet == 5 ? released : 0;
}

static const ebpfMonHangSources sources = { readThread, readKernelStack, readStack, readLockSet, getReleased };
static const char *const names[] = { "R:ROOT", "R:SLOW", NULL };
static ebpfMonTargets *targets;
static ebpfMonHangFinder *finder;
static ebpfMonHang found[EBPFMON_HANGS_MAX];
static ebpfMonHealth health;

static ebpfMonSeenThread holder(uint32_t tid, uint64_t since)
{
    ebpfMonSeenThread t = { .tid = tid };

    t.seen.tgid = PID;
    t.seen.heldCount = 1;
    t.seen.held[0].lockSet = 5;
    t.seen.held[0].root = TARGETTEST_ADDR(0);
    t.seen.held[0].begin = NOW - since;
    return t;
}

static unsigned find(const ebpfMonSeenThread *threads, unsigned n)
{
    return ebpfMonHangFinderFind(finder, threads, n, NOW, found, &health);
}

static void testHolder(void)
{
    ebpfMonSeenThread t[3] = { holder(1, 4 * S), holder(2, 20 * S) };

    testDiag("a thread that holds a lock set hangs; one that waits for it does not");
    doing[1] = "sleeping in nanosleep (hrtimer_nanosleep)";
    testOk(find(t, 1) == 0 && health.hangLines == 0, "4 s are no hang");
    t[0] = holder(1, 6 * S);
    testOk1(find(t, 1) == 1 && found[0].tid == 1 && found[0].since == 6 && found[0].begin == NOW - 6 * S);
    testOk(strcmp(found[0].who, "IOC vac (pid 77): thread thread1 (1) in record R:ROOT") == 0, "%s", found[0].who);
    testOk(strcmp(found[0].what, "sleeping in nanosleep (hrtimer_nanosleep), at readValue < process < libdbCore.so") ==
               0,
           "%s", found[0].what);
    doing[2] = "sleeping in futex (futex_wait_queue)";
    testOk(find(t, 2) == 1 && found[0].tid == 1, "the other thread requested the lock set earlier, but still waits: %u",
           found[0].tid);
    doing[1] = "sleeping in futex (futex_wait_queue)";
    testOk(find(t, 2) == 1 && found[0].tid == 2, "both wait: the thread that requested it first counts: %u",
           found[0].tid);
    t[0].doubt = 20 * S;
    testOk(find(t, 2) == 2, "it is not certain which one that is: both may hang");
    t[0].doubt = 0;
    released = NOW - 2 * S;
    testOk(find(t, 2) == 0, "it holds the lock set only since another thread released it, 2 s ago");
    released = 0;
    doing[1] = doing[2] = "running";
    testOk(find(t, 2) == 1 && found[0].tid == 2, "both run: the thread that requested it first counts");
    t[1].seen.held[0].lockSet = 6;
    testOk(find(t, 2) == 2, "two lock sets have a holder each");
}

/* The lock set of a chain of a scan list is read only when it is needed. */
static void testInList(void)
{
    ebpfMonSeenThread t[2] = { holder(1, 6 * S), holder(2, 20 * S) };

    testDiag("a scan list waits for a lock set");
    doing[1] = "running";
    doing[2] = "sleeping in futex (futex_wait_queue)";
    t[1].seen.held[0].lockSet = 0;
    lockSetOf = 5;
    testOk(find(t, 2) == 1 && found[0].tid == 1, "its lock set is that of the thread that hangs: %u", found[0].tid);
    lockSetOf = 6;
    testOk(find(t, 2) == 2, "it has another one: both hang");
    t[0].seen.held[0].lockSet = 0;
    lockSetOf = 0;
    testOk(find(t, 2) == 2, "lock sets that cannot be read are not the same one");
    lockSetOf = 5;
    testOk(find(t, 2) == 1 && found[0].tid == 1, "both are in scan lists, with the same lock set");
}

static void testCallback(void)
{
    ebpfMonSeenThread t = { .tid = 3 };

    testDiag("a callback that hangs");
    t.seen.tgid = PID;
    t.seen.busySince = NOW - 7 * S;
    doing[3] = "running";
    testOk1(find(&t, 1) == 1 && found[0].since == 7 && found[0].begin == NOW - 7 * S);
    testOk(strcmp(found[0].who, "IOC vac (pid 77): thread thread3 (3) in a callback") == 0, "%s", found[0].who);
    t.seen.heldCount = 1;
    t.seen.held[0] = (struct ebpfMonHeld){ .lockSet = 5, .root = 0x1234, .begin = NOW - 6 * S };
    testOk(find(&t, 1) == 1 && found[0].begin == NOW - 7 * S,
           "one hang, even if the thread locks several lock sets meanwhile");
    testOk(strstr(found[0].who, "in record ?") != NULL, "a root that is not in the catalogue: %s", found[0].who);
}

static void testRecord(void)
{
    ebpfMonSeenThread t = holder(4, 9 * S);

    testDiag("the record that the thread processes, and the text of the stack");
    doing[4] = "running";
    saved = TARGETTEST_ADDR(1);
    testOk1(find(&t, 1) == 1 && strcmp(found[0].now, "R:SLOW") == 0);
    testOk(strcmp(found[0].who, "IOC vac (pid 77): thread thread4 (4) in record R:ROOT, at R:SLOW") == 0, "%s",
           found[0].who);
    testOk1(health.hangLines == 5 && strcmp(health.hangLine[1], "  in the kernel: schedule < wait_77_4") == 0);
    testOk(strcmp(health.hangLine[0], "IOC vac (pid 77): thread thread4 (4) in record R:ROOT, at R:SLOW since 9 s") ==
               0,
           "%s", health.hangLine[0]);
    testOk1(strcmp(health.hangLine[2], "  #0 readValue+0x0 ()") == 0);
    stacksRead = 0;
    find(&t, 1);
    testOk(stacksRead == 0, "the stack is kept, and not read every second");
}

/* In a pass whose chains are not timed only the stack tells the record. */
static void testUntimedPass(void)
{
    ebpfMonSeenThread t = holder(7, 9 * S);

    testDiag("a pass whose chains are not timed");
    doing[7] = "running";
    t.seen.held[0].sp = 0x7000;
    t.seen.held[0].root = 0;
    testOk(find(&t, 1) == 1 && strstr(found[0].who, "(7) in record R:SLOW") != NULL, "%s", found[0].who);
    t.seen.busySince = NOW - 9 * S;
    testOk(find(&t, 1) == 1 && strstr(found[0].who, "(7) in a callback, at R:SLOW") != NULL,
           "it is not known since when it processes this record: %s", found[0].who);
}

static void testBusyHost(void)
{
    ebpfMonSeenThread t = holder(5, 9 * S);

    testDiag("a stack that is not read in time");
    doing[5] = "running";
    unread = 2;
    testOk(find(&t, 1) == 1 && !found[0].now[0] && !strstr(found[0].who, ", at "), "the record is not known: %s",
           found[0].who);
    testOk(find(&t, 1) == 1 && !found[0].now[0], "nor is it the next time");
    testOk(find(&t, 1) == 1 && strcmp(found[0].now, "R:SLOW") == 0, "the stack is read again at once: %s",
           found[0].who);
    stacksRead = 0;
    find(&t, 1);
    testOk(stacksRead == 0, "then the stack is kept");
    t = holder(6, 9 * S);
    doing[6] = "running";
    unread = 100;
    for (int i = 0; i < 50; i++)
        find(&t, 1);
    testOk(stacksRead == 6, "a stack that cannot be read is not tried for ever: %u", stacksRead);
    unread = 0;
}

static void testLimits(void)
{
    ebpfMonSeenThread t = holder(1, 100 * S), many[EBPFMON_HANGS_MAX + 9];

    testDiag("limits");
    ebpfMonHangLimit = 0;
    testOk(find(&t, 1) == 0, "limit 0: nothing hangs");
    ebpfMonHangLimit = 5;
    doing[1] = NULL;
    testOk(find(&t, 1) == 0, "the thread has ended");
    doing[1] = "running";
    t.seen.tgid = PID + 1;
    testOk(find(&t, 1) == 0, "the IOC is not watched");
    for (unsigned i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        many[i] = holder(1, 100 * S);
        many[i].seen.held[0].lockSet = 100 + i;
        many[i].seen.held[0].begin += i;
    }
    stacksRead = 0;
    testOk1(find(many, EBPFMON_HANGS_MAX + 9) == EBPFMON_HANGS_MAX);
    testOk(stacksRead <= 8 && health.hangLines <= EBPFMON_HANG_LINES, "%u stacks are read, with %u lines", stacksRead,
           health.hangLines);
}

/* A turn has ended in the middle of a pass: the entry has the root of an earlier chain. */
static void testOldRoot(void)
{
    struct ebpfMonThread seen = { .heldCount = 1, .held = { { .root = 5, .sp = 1, .turn = 3 } } };

    ebpfMonHangFinderForgetOldRoot(&seen, 3);
    testOk(seen.held[0].root == 5, "the root of a pass in its turn");
    seen.held[0].sp = 0;
    ebpfMonHangFinderForgetOldRoot(&seen, 4);
    testOk(seen.held[0].root == 5, "a chain that is no part of a pass has its root in any turn");
    seen.held[0].sp = 1;
    ebpfMonHangFinderForgetOldRoot(&seen, 4);
    testOk(!seen.held[0].root, "the root of an earlier chain of the pass");
}

MAIN(testHangFinder)
{
    testPlan(0);
    targets = ebpfMonTargetsNew();
    targetTestNew(targets, "vac", PID, 0, names);
    finder = ebpfMonHangFinderNew(targets, &sources);
    testHolder();
    testInList();
    testCallback();
    testRecord();
    testUntimedPass();
    testBusyHost();
    testLimits();
    testOldRoot();
    ebpfMonHangFinderFree(finder);
    ebpfMonHangFinderFree(NULL);
    return testDone();
}
