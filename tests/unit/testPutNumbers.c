/* SPDX-License-Identifier: BSD-3-Clause */
/* Missing puts are found by the numbers of the puts that came. */
#include <stddef.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "put/iocPuts.h"

static uint64_t lost;

static uint64_t countLost(void *arg)
{
    return lost;
}

static uint64_t at = 1; /* time at which the puts are made */

static uint64_t add(ebpfMonPutNumbers *numbers, uint32_t iocId, uint32_t tid, uint64_t number)
{
    return ebpfMonPutNumbersAdd(numbers, iocId, tid, number, at);
}

MAIN(testPutNumbers)
{
    ebpfMonPutNumbers *numbers = ebpfMonPutNumbersNew(countLost, NULL);
    uint64_t sum = 0;

    testPlan(10);
    testOk(add(numbers, 1, 100, 17) == 0, "the first put that we see may have any number");
    testOk1(add(numbers, 1, 100, 18) == 0);
    testOk(add(numbers, 1, 101, 5) == 0 && add(numbers, 1, 100, 19) == 0,
           "each thread counts for itself");
    testOk(add(numbers, 1, 100, 22) == 2, "two puts are missing");
    lost = 1;
    at = ebpfMonClockMonotonic();
    testOk(add(numbers, 1, 100, 25) == 0, "… but events were lost, and are counted as such");
    testOk(add(numbers, 1, 100, 27) == 0, "a put that waited in the ring: the losses were counted before");
    at = ebpfMonClockMonotonic();
    testOk(add(numbers, 1, 101, 7) == 0, "of a thread that made no put since: its event was lost when theirs were");
    testOk(add(numbers, 1, 100, 28) == 0 && add(numbers, 1, 100, 30) == 1 && add(numbers, 1, 101, 9) == 1,
           "no event was lost since");
    testOk(add(numbers, 1, 100, 1) == 0, "another thread has this id now");
    for (uint32_t tid = 0; tid < 100000; tid++)
        sum += add(numbers, tid % 7, tid, tid * 3);
    testOk(sum == 0, "more threads than are remembered");
    ebpfMonPutNumbersFree(numbers);
    return testDone();
}
