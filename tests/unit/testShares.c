/* SPDX-License-Identifier: BSD-3-Clause */
/* common/shares.h: who gives up what if a table is full. */
#include <stdlib.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/shares.h"

enum { root, first = 1000, second, third };

#define FLOOD 1000

static ebpfMonShare share[FLOOD + 2];
static unsigned count;

static void add(uint64_t user, uint64_t size)
{
    share[count] = (ebpfMonShare){ .user = user, .isSystem = user < EBPFMON_SYSTEM_USERS, .order = count,
                                   .size = size };
    count++;
}

static unsigned countOut(uint64_t user)
{
    unsigned n = 0;

    for (unsigned i = 0; i < count; i++)
        n += share[i].user == user && share[i].isOut;
    return n;
}

static void testEqual(void)
{
    testDiag("users of the same kind");
    count = 0;
    add(first, 1);
    add(second, 1);
    add(second, 1);
    add(second, 1);
    testOk1(ebpfMonSharesFit(share, count, 4) == 0 && !countOut(second));
    add(third, 1);
    testOk(ebpfMonSharesFit(share, count, 4) == 1 && share[3].isOut, "who has most gives up what he got last");
    add(third, 1);
    add(third, 1);
    testOk(ebpfMonSharesFit(share, count, 4) == 3 && countOut(second) == 1 && countOut(third) == 2 && !share[0].isOut,
           "until all have about as much");
    count = 0;
    add(first, 1);
    add(second, 1);
    testOk(ebpfMonSharesFit(share, count, 1) == 1 && share[1].isOut, "if two have as much, who came later");
    count = 0;
    add(first, 5);
    add(second, 1);
    add(second, 1);
    testOk(ebpfMonSharesFit(share, count, 6) == 1 && share[0].isOut, "places count, not things");
    count = 0;
    testOk1(ebpfMonSharesFit(share, count, 0) == 0);
}

static void testSystem(void)
{
    testDiag("system users");
    count = 0;
    add(root, 1);
    add(root, 1);
    add(root, 1);
    add(first, 1);
    testOk(ebpfMonSharesFit(share, count, 3) == 1 && share[3].isOut, "another user takes nothing from root");
    add(root, 1);
    testOk(ebpfMonSharesFit(share, count, 4) == 1 && share[3].isOut, "and root takes from him");
    testOk(ebpfMonSharesFit(share, count, 3) == 2 && share[3].isOut && share[4].isOut, "and then from himself");
}

static void testFlood(void)
{
    testDiag("one user asks for everything");
    count = 0;
    add(first, 1);
    add(second, 1);
    for (unsigned i = 0; i < FLOOD; i++)
        add(third, 1);
    testOk1(ebpfMonSharesFit(share, count, 32) == FLOOD + 2 - 32 && !share[0].isOut && !share[1].isOut &&
            !share[31].isOut && share[32].isOut);
}

MAIN(testShares)
{
    testPlan(10);
    testEqual();
    testSystem();
    testFlood();
    return testDone();
}
