/* SPDX-License-Identifier: BSD-3-Clause */
/* health/healthCollector.h: in which record of a pass a thread is. The test invents the stack. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "health/healthCollector.h"
#include "targetTest.h"

#define S    1000000000ull
#define PASS (1000 * S) /* the begin of the pass */
#define PID  77
#define SP   0x7000

static const char *const names[] = { "R:ONE", "R:TWO", NULL };
static ebpfMonPassRecords *records;
static int atRecord; /* -1: no record on the stack; -2: it cannot be read */

/* Below the word of the list there is one of another record, which that record made process. */
static int readWords(pid_t pid, uint64_t sp, uint64_t word[EBPFMON_PASS_STACK])
{
    if (pid != PID || sp != SP || atRecord == -2)
        return -1;
    memset(word, 0, EBPFMON_PASS_STACK * sizeof(*word));
    word[EBPFMON_PASS_STACK - 1] = 0x1234;
    if (atRecord >= 0) {
        word[EBPFMON_PASS_STACK - 3] = TARGETTEST_ADDR(atRecord);
        word[0] = TARGETTEST_ADDR(!atRecord);
    }
    return 0;
}

static uint64_t doubt; /* of the last look */

/* What a look at PASS + "age" ns makes of the thread. */
static struct ebpfMonHeld look(uint64_t age)
{
    ebpfMonSeenThread t = { .tid = 5 };

    t.seen.tgid = PID;
    t.seen.heldCount = 1;
    t.seen.held[0].sp = SP;
    t.seen.held[0].begin = PASS;
    ebpfMonPassRecordsBegin(records);
    ebpfMonPassRecordsSee(records, &t, PASS + age);
    ebpfMonPassRecordsEnd(records);
    doubt = t.doubt;
    return t.seen.held[0];
}

static int isAt(struct ebpfMonHeld h, int record, uint64_t since)
{
    return h.root == TARGETTEST_ADDR(record) && h.begin == PASS + since;
}

static void forgetAll(void)
{
    ebpfMonPassRecordsBegin(records);
    ebpfMonPassRecordsEnd(records);
}

MAIN(testPassRecords)
{
    ebpfMonTargets *targets = ebpfMonTargetsNew();
    struct ebpfMonHeld h;

    testPlan(10);
    targetTestNew(targets, "vac", PID, 0, names);
    records = ebpfMonPassRecordsNew(targets, readWords);
    atRecord = 0;
    h = look(S / 10);
    testOk(!h.root && h.begin == PASS, "a short pass is not looked at");
    testOk(isAt(look(S), 0, S), "the first look finds the record: the thread has been in it since then");
    testOk(doubt == S, "it may have been in it since the pass began");
    testOk(isAt(look(2 * S), 0, S), "it still is");
    atRecord = 1;
    testOk(isAt(look(3 * S), 1, 3 * S) && doubt == S, "the pass goes on: another record, since one of two looks");
    atRecord = -2;
    testOk(isAt(look(4 * S), 1, 3 * S), "a stack that cannot be read tells nothing new");
    atRecord = 1;
    testOk(isAt(look(9 * S), 1, 3 * S), "the same record before and after that");
    forgetAll();
    testOk(isAt(look(10 * S), 1, 10 * S), "a thread that was not seen is forgotten");
    forgetAll();
    atRecord = -1;
    h = look(S);
    testOk(!h.root && h.begin == PASS, "no record is found: the pass stands for it");
    atRecord = 0;
    look(2 * S);
    atRecord = -1;
    h = look(3 * S);
    testOk(!h.root && h.begin == PASS + 3 * S, "it has left the record");
    ebpfMonPassRecordsFree(records);
    ebpfMonPassRecordsFree(NULL);
    return testDone();
}
