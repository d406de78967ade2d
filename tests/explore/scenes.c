/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenes: which records there are, what the threads do, and what must be true at the end. */
#include "explore.h"
#include "ioc.h"
#include "userPart.h"

enum { A, B, C, D };

static iocRecord *record(unsigned i)
{
    return &iocOne->record[i];
}

/* --- what must be true ------------------------------------------------------------------------------------------ */

static void checkNotHigher(void)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        if (userCount(i) > iocProcessed[i])
            exploreFail("%s has processed %u times, and its count is %u: too high", record(i)->name,
                        (unsigned)iocProcessed[i], (unsigned)userCount(i));
}

/* Each record has the count that is true. A lower one is marked. */
static void checkCounts(void)
{
    userReadMarks();
    checkNotHigher();
    for (unsigned i = 0; i < iocOne->count; i++)
        if (userCount(i) < iocProcessed[i] && !userIsMarked(i))
            exploreFail("%s has processed %u times, and its count is %u, without a mark", record(i)->name,
                        (unsigned)iocProcessed[i], (unsigned)userCount(i));
}

static void check(void) { checkCounts(); userCheckIdle(); }

/* Where nothing is in doubt, no count is marked. */
static void checkExact(void)
{
    check();
    for (unsigned i = 0; i < iocOne->count; i++)
        if (userIsMarked(i))
            exploreFail("%s has processed %u times, its count is %u, and it is marked", record(i)->name,
                        (unsigned)iocProcessed[i], (unsigned)userCount(i));
}

/* Where all threads run on one CPU, each trap was counted. */
static void checkTraps(void) { checkExact(); userCheckTraps(iocTraps); }

/* Where the monitor begins in the middle: what processed before may be missing. */
static void checkBegun(void) { checkNotHigher(); userCheckIdle(); }

/* --- what threads do -------------------------------------------------------------------------------------------- */

static void scan(void) { iocScanList(0); }
static void scanTwice(void) { iocScanList(0); iocScanList(0); }
static void scanOther(void) { iocScanList(1); }
static void putA(void) { iocPutToField(record(A), 1); }
static void putB(void) { iocPutToField(record(B), 1); }
static void putC(void) { iocPutToField(record(C), 1); }
static void putD(void) { iocPutToField(record(D), 1); }
static void setA(void) { iocPutToField(record(A), 0); }
static void processA(void) { iocProcessIt(record(A)); }
static void completeA(void) { iocRunCallbacks(record(A)); }
static void scanAsync(void) { scan(); iocEndRequests(); }
static void scanTwiceAsync(void) { scanTwice(); iocEndRequests(); }
static void putAsync(void) { putA(); iocEndRequests(); }
static void processUnseen(void) { iocProcessUnseen(record(A)); iocEndRequests(); }
static void putFlnkC(void) { iocPutFlnk(record(C), record(D)); }
static void putFlnkCAndC(void) { putFlnkC(); putC(); }
static void scanAndSetB(void) { scan(); iocPutToField(record(B), 0); }
static void putFlnkA(void) { iocPutFlnk(record(A), 0); }
static void followC(void) { userFollowLink(C); }
static void moveA(void) { iocPutScan(record(A), 1); }
static void stopA(void) { iocPutScan(record(A), -1); }
static void followA(void) { userFollowLink(A); }
static void beginChains(void) { userBeginChains(USER_COUNTS); }
static void turn(void) { userSetTurn(1); userSetTurn(0); }
static void endAndBegin(void) { userEndPasses(); userBeginPasses(); }

static void putGroup(void)
{
    iocRecord *many[] = { record(A), record(C) };

    iocPutGroup(many, 2);
}

static void processMany(void)
{
    iocRecord *many[] = { record(A), record(A), record(D) };

    iocProcessMany(many, 3);
}

static void readGroup(void)
{
    iocRecord *many[] = { record(A), record(C) };

    iocReadMany(many, 2);
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static void link(unsigned from, unsigned to)
{
    record(from)->flnk = record(to);
    iocJoin(record(from), record(to));
}

/* A and C are in list 0; the forward link of A leads to B. */
static void makeRecords(int kindOfA)
{
    iocMake();
    iocAddRecord("A", kindOfA);
    iocAddRecord("B", iocSync);
    iocAddRecord("C", iocSync);
    iocAddRecord("D", iocSync);
    link(A, B);
    iocAddToList(0, record(A));
    iocAddToList(0, record(C));
}

static void makePasses(int kindOfA, int isOneCpu)
{
    makeRecords(kindOfA);
    userMake(isOneCpu);
    userBeginChains(USER_COUNTS);
    userBeginPasses();
    userLetTimePass();
}

static void addScanAnd(void (*other)(void))
{
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("other", other);
}

/* A, which is asynchronous, is processed by two passes. */
static void addAsync(void)
{
    exploreAddThread("scan-1", scanTwiceAsync);
    exploreAddThread("cbMedium", completeA);
    iocOne->requesters = 1;
}

/* … by one pass, and by another thread. */
static void addAsyncAnd(void (*other)(void))
{
    exploreAddThread("scan-1", scanAsync);
    exploreAddThread("cbMedium", completeA);
    exploreAddThread("other", other);
    iocOne->requesters = 2;
}

/* --- passes ----------------------------------------------------------------------------------------------------- */

static void passPut(void) { makePasses(iocSync, 0); addScanAnd(putA); }

static void passPutInner(void) { makePasses(iocSync, 0); addScanAnd(putB); }

static void passSet(void) { makePasses(iocSync, 0); addScanAnd(setA); }

static void passPutCpu(void) { makePasses(iocSync, 1); addScanAnd(putA); }

/* Shortly after a put to a link: each record is looked at. */
static void passPutDoubt(void)
{
    makePasses(iocSync, 0);
    userDoubt();
    addScanAnd(putA);
}

/* Shortly after passes began to be watched. */
static void passPutUnsafe(void)
{
    makePasses(iocSync, 0);
    userLetLittleTimePass();
    addScanAnd(putA);
}

static void passPutTwo(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("scan-1", scan);
    exploreAddThread("one", putA);
    exploreAddThread("two", putB);
}

static void passProcess(void) { makePasses(iocSync, 0); addScanAnd(processA); }

static void passGroup(void) { makePasses(iocSync, 0); addScanAnd(putGroup); }

static void passReadGroup(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("scan-1", scan);
    exploreAddThread("reader", readGroup);
    exploreAddThread("putter", putC);
}

static void passAsync(void) { makePasses(iocAsync, 0); addAsync(); }

static void passAsyncFirst(void) { makePasses(iocAsyncStampsFirst, 0); addAsync(); }

static void passAsyncUnsafe(void)
{
    makePasses(iocAsyncStampsFirst, 0);
    userLetLittleTimePass();
    addAsync();
}

static void passAsyncPut(void) { makePasses(iocAsyncStampsFirst, 0); addAsyncAnd(putAsync); }

/* A thread that nobody has seen take the lock. */
static void passAsyncUnseen(void)
{
    makePasses(iocAsyncStampsFirst, 0);
    userLetLittleTimePass();
    addAsyncAnd(processUnseen);
}

/* An output link of A puts to D, and makes it process before the forward link makes B. */
static void makeOut(void)
{
    makeRecords(iocSync);
    record(A)->out = record(D);
    iocJoin(record(A), record(D));
    userMake(0);
    userBeginChains(USER_COUNTS);
}

static void passOut(void)
{
    makeOut();
    userBeginPasses();
    userLetTimePass();
    addScanAnd(putD);
}

/* Two lists, with records that an input link makes one group. */
static void passLists(void)
{
    makeRecords(iocSync);
    record(D)->inp = record(A);
    iocJoin(record(D), record(A));
    iocAddToList(1, record(D));
    userMake(0);
    userBeginChains(USER_COUNTS);
    userBeginPasses();
    userLetTimePass();
    exploreAddThread("scan-1", scan);
    exploreAddThread("scan-2", scanOther);
    exploreAddThread("putter", putA);
}

static void passLink(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putFlnkC);
    exploreAddThread("monitor", followC);
}

static void passUnlink(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putFlnkA);
    exploreAddThread("monitor", followA);
}

/* A goes to another list, or to none. */
static void makeMoves(void (*move)(void))
{
    makeRecords(iocSync);
    iocAddToList(1, record(D));
    userMake(0);
    userBeginChains(USER_COUNTS);
    userBeginPasses();
    userLetTimePass();
    exploreAddThread("scan-1", scan);
    exploreAddThread("scan-2", scanOther);
    exploreAddThread("putter", move);
    exploreAddThread("monitor", userFollowLists);
}

static void passMove(void) { makeMoves(moveA); }
static void passStop(void) { makeMoves(stopA); }

/* --- chains ----------------------------------------------------------------------------------------------------- */

static void makeChains(int level, int kindOfA)
{
    makeRecords(kindOfA);
    link(B, D);
    userMake(0);
    userBeginChains(level);
}

static void chainPut(void) { makeChains(USER_COUNTS, iocSync); addScanAnd(putA); }

static void chainPutInner(void) { makeChains(USER_COUNTS, iocSync); addScanAnd(putB); }

static void chainOut(void) { makeOut(); addScanAnd(putD); }

static void chainAsync(void) { makeChains(USER_COUNTS, iocAsyncStampsFirst); addAsync(); }

static void chainGroup(void) { makeChains(USER_COUNTS, iocSync); addScanAnd(putGroup); }

static void chainLink(void)
{
    makeRecords(iocSync);
    userMake(0);
    userBeginChains(USER_COUNTS);
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putFlnkC);
    exploreAddThread("monitor", followC);
}

/* B is disabled, so a pass leaves out B and D. C makes D process, which the monitor does not know yet. */
static void chainDisabled(void)
{
    makeChains(USER_COUNTS, iocSync);
    record(B)->isDisabled = 1;
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putFlnkCAndC);
    exploreAddThread("monitor", followC);
}

static void chainUnlink(void)
{
    makeChains(USER_COUNTS, iocSync);
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putFlnkA);
    exploreAddThread("monitor", followA);
}

/* A new link leads to the end of a stretch, so there are two stretches from then on. */
static void chainCut(void)
{
    makeChains(USER_COUNTS, iocSync);
    exploreAddThread("scan-1", scanAndSetB);
    exploreAddThread("putter", putFlnkC);
    exploreAddThread("monitor", followC);
}

static void timedPut(void) { makeChains(USER_CHAINS, iocSync); addScanAnd(putA); }

static void timedAsync(void) { makeChains(USER_CHAINS, iocAsyncStampsFirst); addAsync(); }

static void timedGroup(void) { makeChains(USER_CHAINS, iocSync); addScanAnd(putGroup); }

/* --- changes of the level --------------------------------------------------------------------------------------- */

static void attachPut(void)
{
    makeRecords(iocSync);
    userMake(0);
    exploreAddThread("monitor", beginChains);
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putA);
}

static void detachPut(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("monitor", userEnd);
    addScanAnd(putA);
}

static void beginPut(void)
{
    makeRecords(iocSync);
    userMake(0);
    userBeginChains(USER_COUNTS);
    exploreAddThread("monitor", userBeginPasses);
    addScanAnd(putA);
}

static void beginAsync(void)
{
    makeRecords(iocAsyncStampsFirst);
    userMake(0);
    userBeginChains(USER_COUNTS);
    exploreAddThread("monitor", userBeginPasses);
    addAsync();
}

static void beginGroup(void)
{
    makeRecords(iocSync);
    userMake(0);
    userBeginChains(USER_COUNTS);
    exploreAddThread("monitor", userBeginPasses);
    addScanAnd(putGroup);
}

static void endAsync(void)
{
    makePasses(iocAsyncStampsFirst, 0);
    exploreAddThread("monitor", userEndPasses);
    addAsync();
}

static void endPut(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("monitor", userEndPasses);
    addScanAnd(putA);
}

static void endBeginPut(void)
{
    makePasses(iocSync, 0);
    exploreAddThread("monitor", endAndBegin);
    addScanAnd(putA);
}

/* D is in the lock set of A, and no link makes it process. */
static void passMany(void)
{
    makePasses(iocSync, 0);
    iocJoin(record(A), record(D));
    exploreAddThread("driver", processMany);
    exploreAddThread("scan", scanTwice);
}

static void chainMany(void)
{
    makeRecords(iocSync);
    iocJoin(record(A), record(D));
    userMake(0);
    userBeginChains(USER_COUNTS);
    exploreAddThread("driver", processMany);
    exploreAddThread("scan", scan);
}

static void makeTurn(int kindOfA)
{
    makeRecords(kindOfA);
    userMake(0);
    userBeginChains(USER_CHAINS);
    userBeginPasses();
    userLetTimePass();
    exploreAddThread("monitor", turn);
}

static void turnPut(void) { makeTurn(iocSync); addScanAnd(putA); }

static void turnAsync(void) { makeTurn(iocAsyncStampsFirst); addAsync(); }

#define SCENE(name, preemptions, most, check, about) { #name, about, preemptions, most, name, iocBegin, check }

/* beginPut and beginGroup fail with 2 preemptions (KNOWN in test_explore.py). */
const exploreScene exploreScenes[] = {
    SCENE(passPut, 2, 3, checkExact, "two passes, and a put to the first record of a chain"),
    SCENE(passPutInner, 2, 3, checkExact, "two passes, and a put to the last record of a chain"),
    SCENE(passSet, 2, 3, checkExact, "two passes, and a put that does not process"),
    SCENE(passPutCpu, 1, 2, checkTraps, "the same on one CPU, whose elements both threads use"),
    SCENE(passPutDoubt, 2, 3, checkExact, "two passes soon after a put to a link, and a put"),
    SCENE(passPutUnsafe, 2, 3, check, "two passes soon after they began to be watched, and a put"),
    SCENE(passPutTwo, 1, 2, checkExact, "a pass, and puts by two threads"),
    SCENE(passProcess, 2, 3, checkExact, "two passes, and a thread that processes"),
    SCENE(passMany, 2, 3, checkExact, "two passes, and a driver with three processings under one lock"),
    SCENE(passGroup, 2, 3, checkExact, "two passes, and a put to a group of records"),
    SCENE(passReadGroup, 1, 2, checkExact, "a pass, a put, and a read of a group of records"),
    SCENE(passOut, 2, 3, checkExact, "two passes with an output link, and a put to where it leads"),
    SCENE(passAsync, 2, 3, checkExact, "two passes of an asynchronous record"),
    SCENE(passAsyncFirst, 2, 3, checkExact, "the same, and it sets its time stamp when it begins"),
    SCENE(passAsyncUnsafe, 2, 3, check, "the same soon after passes began to be watched"),
    SCENE(passAsyncPut, 1, 2, checkExact, "a pass of an asynchronous record, and a put to it"),
    SCENE(passAsyncUnseen, 1, 2, check, "a pass, and a thread that took the lock before the probes were there"),
    SCENE(passLists, 1, 2, checkExact, "passes of two lists with records of one group, and a put"),
    SCENE(passLink, 1, 2, check, "two passes, and a put to a link"),
    SCENE(passUnlink, 1, 2, checkExact, "two passes, and a put that removes a link"),
    SCENE(passMove, 1, 2, check, "passes of two lists, and a put that moves a record to the other one"),
    SCENE(passStop, 1, 2, check, "the same, and a put that takes it out of its list"),
    SCENE(chainPut, 3, 4, checkExact, "chains that are watched one by one, and a put"),
    SCENE(chainPutInner, 3, 4, checkExact, "the same, and a put to the middle of a stretch"),
    SCENE(chainOut, 2, 4, checkExact, "chains with an output link, and a put to where it leads"),
    SCENE(chainAsync, 2, 4, checkExact, "chains with an asynchronous record"),
    SCENE(chainMany, 3, 4, checkExact, "chains, and such a driver"),
    SCENE(chainGroup, 3, 4, checkExact, "chains, and a put to a group of records"),
    SCENE(chainLink, 1, 2, check, "chains, and a put to a link"),
    SCENE(chainDisabled, 1, 2, check, "the same, and a disabled record in the middle of a stretch"),
    SCENE(chainUnlink, 1, 2, checkExact, "chains, and a put that removes a link"),
    SCENE(chainCut, 1, 2, check, "chains, and a new link to the end of a stretch"),
    SCENE(timedPut, 3, 4, checkExact, "chains that are timed, and a put"),
    SCENE(timedGroup, 2, 3, checkExact, "chains that are timed, and a put to a group of records"),
    SCENE(timedAsync, 2, 3, checkExact, "chains that are timed, with an asynchronous record"),
    SCENE(attachPut, 1, 2, checkBegun, "the monitor begins to count"),
    SCENE(detachPut, 1, 2, checkBegun, "the monitor lets the IOC go"),
    SCENE(beginPut, 1, 1, check, "from chains to passes"),
    SCENE(beginAsync, 1, 2, check, "the same, with an asynchronous record"),
    SCENE(beginGroup, 1, 1, check, "the same, with a put to a group of records"),
    SCENE(endAsync, 1, 2, checkExact, "from passes to chains, with an asynchronous record"),
    SCENE(endPut, 1, 2, checkExact, "from passes to chains"),
    SCENE(endBeginPut, 1, 2, checkExact, "from passes to chains and back"),
    SCENE(turnAsync, 1, 2, checkExact, "a turn of timed chains, with an asynchronous record"),
    SCENE(turnPut, 1, 2, checkExact, "a turn of timed chains begins and ends"),
};

const unsigned exploreSceneCount = sizeof(exploreScenes) / sizeof(exploreScenes[0]);
