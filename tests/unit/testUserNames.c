/* SPDX-License-Identifier: BSD-3-Clause */
/* User names by uid: a caller waits for a bounded time, also if the name service does not answer. */
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <errlog.h>
#include <testMain.h>

#include "put/putClients.h"

#define DEADLINE 0.3 /* s: long enough for a loaded host to run the thread that answers */
#define SHORT    0.1 /* s; a shorter time counts as no wait */

static int isHanging;         /* atomic: the name service does not answer */
static int calls;             /* atomic */
static epicsEventId hangs;    /* triggered when it begins to hang */
static epicsEventId goOn;     /* ends the hang */
static char text[40];

static int readName(uid_t uid, char *buf, size_t size)
{
    epicsAtomicIncrIntT(&calls);
    if (epicsAtomicGetIntT(&isHanging)) {
        epicsEventMustTrigger(hangs);
        epicsEventMustWait(goOn);
    }
    if (uid == 404) {
        snprintf(buf, size, "%u", (unsigned)uid);
        return -1;
    }
    snprintf(buf, size, "user%u", (unsigned)uid);
    return 0;
}

/* Calls ebpfMonUserNamesFind. Returns the time of the call, in s; sets *known to its result. */
static double find(ebpfMonUserNames *names, uid_t uid, int *known)
{
    epicsUInt64 begin = epicsMonotonicGet();

    *known = ebpfMonUserNamesFind(names, uid, text, sizeof(text));
    return (double)(epicsMonotonicGet() - begin) / 1e9;
}

static void testAnswers(ebpfMonUserNames *names)
{
    int known, before;

    testDiag("A name service that answers");
    find(names, 1, &known);
    testOk(known && strcmp(text, "user1") == 0, "the name is known at the first call: %s", text);
    before = epicsAtomicGetIntT(&calls);
    find(names, 1, &known);
    testOk(known && strcmp(text, "user1") == 0 && epicsAtomicGetIntT(&calls) == before,
           "… and at the next call without asking");
    find(names, 404, &known);
    testOk(known && strcmp(text, "404") == 0, "a uid without a name is known by its number");
    ebpfMonUserNamesFind(names, 4000000000u, text, 5);
    testOk(strcmp(text, "user") == 0, "a long name is cut to the room that there is: %s", text);
}

static void testHang(ebpfMonUserNames *names)
{
    double took;
    int known;

    testDiag("A name service that hangs");
    epicsAtomicSetIntT(&isHanging, 1);
    took = find(names, 2, &known);
    testOk(!known && strcmp(text, "2") == 0, "while the name service hangs the number takes the place of the name");
    testOk(took > 0.9 * DEADLINE && took < 2 * DEADLINE + 1, "a caller waits until the deadline: %g s of %g s", took,
           DEADLINE);
    took = find(names, 2, &known);
    testOk(!known && took < SHORT, "nobody waits for this uid again: %g s", took);
    took = find(names, 3, &known);
    testOk(!known && took < SHORT && strcmp(text, "3") == 0,
           "nobody waits for another uid while the service hangs: %g s", took);
    took = find(names, 1, &known);
    testOk(known && took < SHORT && strcmp(text, "user1") == 0,
           "a name that is known is there while the service hangs");

    eltc(0);
    testOk(ebpfMonUserNamesFree(names, 0.05) == -1, "while its thread hangs nothing is freed");
    eltc(1);
    epicsAtomicSetIntT(&isHanging, 0);
    epicsEventMustTrigger(goOn);
    testOk(ebpfMonUserNamesFree(names, 60) == 0, "once the service has answered, all is freed");
}

/* Tries until the deadline of the test, because another thread reads the name. */
static int becomesKnown(ebpfMonUserNames *names, uid_t uid)
{
    epicsUInt64 begin = epicsMonotonicGet();

    while (epicsMonotonicGet() - begin < 60000000000ull) {
        if (ebpfMonUserNamesFind(names, uid, text, sizeof(text)))
            return 1;
        epicsThreadSleep(0.01);
    }
    return 0;
}

static void testGoesOn(void)
{
    ebpfMonUserNames *names = ebpfMonUserNamesNew(readName, DEADLINE);
    double took;
    int known;

    testDiag("A name service that hung and goes on");
    epicsAtomicSetIntT(&isHanging, 1);
    epicsEventTryWait(hangs);
    find(names, 5, &known);
    find(names, 6, &known);
    epicsEventMustWait(hangs);
    epicsThreadSleep(DEADLINE); /* the name of uid 6 is read */
    epicsEventMustTrigger(goOn);
    testOk(becomesKnown(names, 5) && strcmp(text, "user5") == 0, "the name comes later");
    epicsEventMustWait(hangs);
    took = find(names, 6, &known);
    testOk(!known && took < SHORT, "the service hangs for the next uid, which was waited for: %g s", took);
    epicsAtomicSetIntT(&isHanging, 0);
    epicsEventMustTrigger(goOn);
    testOk(becomesKnown(names, 6) && strcmp(text, "user6") == 0, "the name of the other uid comes later, too");
    for (uid_t uid = 1000; uid < 2000; uid++)
        find(names, uid, &known);
    testOk(known && strcmp(text, "user1999") == 0, "more uids than are remembered are all answered");
    find(names, 5, &known);
    testOk(known && strcmp(text, "user5") == 0, "a uid that was forgotten is asked for again");
    testOk1(ebpfMonUserNamesFree(names, 60) == 0);
}

static ebpfMonUserNames *shared;
static int threadsRight, threadsWrong;

static void runFinder(void *arg)
{
    char name[40];

    for (uid_t uid = 0; uid < 2000; uid++) {
        char want[40];

        snprintf(want, sizeof(want), uid == 404 ? "%u" : "user%u", (unsigned)uid);
        if (!ebpfMonUserNamesFind(shared, uid, name, sizeof(name)))
            continue; /* the other thread, far ahead or behind, replaced this request by its own */
        epicsAtomicIncrIntT(strcmp(name, want) == 0 ? &threadsRight : &threadsWrong);
    }
    epicsEventMustTrigger(arg);
}

static void testThreads(void)
{
    epicsEventId done[2];

    shared = ebpfMonUserNamesNew(readName, 60);
    for (int i = 0; i < 2; i++) {
        done[i] = epicsEventMustCreate(epicsEventEmpty);
        epicsThreadMustCreate("finder", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall),
                              runFinder, done[i]);
    }
    for (int i = 0; i < 2; i++)
        epicsEventMustWait(done[i]);
    testOk(threadsWrong == 0 && threadsRight >= 3900, "two threads get right answers: %d of 4000, %d wrong",
           threadsRight, threadsWrong);
    ebpfMonUserNamesFree(shared, 60);
}

MAIN(testUserNames)
{
    testPlan(18);
    hangs = epicsEventMustCreate(epicsEventEmpty);
    goOn = epicsEventMustCreate(epicsEventEmpty);

    ebpfMonUserNames *names = ebpfMonUserNamesNew(readName, DEADLINE);

    testAnswers(names);
    testHang(names);
    testGoesOn();
    testThreads();
    return testDone();
}
