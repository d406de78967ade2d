/* SPDX-License-Identifier: BSD-3-Clause */
/* The scenes: which records there are, what the threads do, and what must be true at the end. */
#include <stdio.h>
#include <string.h>

#include "explore.h"
#include "ioc.h"
#include "userPart.h"

/* Each record has the count that is true. A lower one is marked. */
static void checkCounts(void)
{
    userReadMarks();
    for (unsigned i = 0; i < iocOne->count; i++) {
        uint64_t count = userCount(i), truth = iocProcessed[i];

        if (count > truth)
            exploreFail("%s has processed %u times, and its count is %u: too high", iocOne->record[i].name,
                        (unsigned)truth, (unsigned)count);
        if (count < truth && !userIsMarked(i))
            exploreFail("%s has processed %u times, and its count is %u, without a mark", iocOne->record[i].name,
                        (unsigned)truth, (unsigned)count);
    }
}

static void check(void)
{
    checkCounts();
    userCheckIdle();
}

static iocRecord *record(unsigned i)
{
    return &iocOne->record[i];
}

/* --- passes ----------------------------------------------------------------------------------------------------- */

/* A and C are in list 0; the forward link of A leads to B. */
static void makeThree(void)
{
    iocMake();
    iocAddRecord("A", iocSync);
    iocAddRecord("B", iocSync);
    iocAddRecord("C", iocSync);
    record(0)->flnk = record(1);
    iocJoin(record(0), record(1));
    iocAddToList(0, record(0));
    iocAddToList(0, record(2));
    userMake(0);
}

static void scanTwice(void)
{
    iocScanList(0);
    iocScanList(0);
}

static void putA(void)
{
    iocPutField_(record(0), 1);
}

static void makePassPut(void)
{
    makeThree();
    userBeginChains(USER_COUNTS);
    userBeginPasses();
    userLetTimePass();
    exploreAddThread("scan-1", scanTwice);
    exploreAddThread("putter", putA);
}

const exploreScene exploreScenes[] = {
    { "passPut", "two passes, and a put to a record of the list", 2, 3, makePassPut, iocBegin, check },
};

const unsigned exploreSceneCount = sizeof(exploreScenes) / sizeof(exploreScenes[0]);
