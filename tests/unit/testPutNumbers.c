/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that did not come, by the numbers of those that did. */
#include <stddef.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "put/putNumbers.h"

static uint64_t lost;

static uint64_t countLost(void *arg)
{
    (void)arg;
    return lost;
}

MAIN(testPutNumbers)
{
    ebpfMonPutNumbers *numbers = ebpfMonPutNumbersNew(countLost, NULL);
    uint64_t sum = 0;

    testPlan(8);
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 100, 17) == 0, "the first one that we see may have any number");
    testOk1(ebpfMonPutNumbersAdd(numbers, 1, 100, 18) == 0);
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 101, 5) == 0 && ebpfMonPutNumbersAdd(numbers, 1, 100, 19) == 0,
           "each thread counts for itself");
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 100, 22) == 2, "two are missing");
    lost = 1;
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 100, 25) == 0, "… but events were lost, and are counted as such");
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 100, 27) == 1, "none was lost since");
    testOk(ebpfMonPutNumbersAdd(numbers, 1, 100, 1) == 0, "another thread has this id now");
    for (uint32_t tid = 0; tid < 100000; tid++)
        sum += ebpfMonPutNumbersAdd(numbers, tid % 7, tid, tid * 3);
    testOk(sum == 0, "more threads than are remembered");
    ebpfMonPutNumbersFree(numbers);
    return testDone();
}
