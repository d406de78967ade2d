/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread that sleeps until it is woken, a file is readable, or a time has passed. */
#include <math.h>
#include <unistd.h>

#include <epicsThread.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "common/clock.h"
#include "common/worker.h"

static void wakeLater(void *arg)
{
    epicsThreadSleep(0.05); /* the delay that is measured */
    ebpfMonWaiterWake(arg);
}

MAIN(testWaiter)
{
    ebpfMonWaiter waiter;
    int woken, pipes[2];
    uint64_t begin;

    testPlan(10);
    testOk(ebpfMonWaiterMake(&waiter) == 0 && pipe(pipes) == 0, "a waiter and a pipe");
    begin = ebpfMonClockMonotonic();
    testOk(!ebpfMonWaiterWait(&waiter, -1, 0.05, &woken) && !woken, "nobody wakes it");
    testOk(ebpfMonClockMonotonic() - begin >= 50000000, "it waited for 50 ms");
    ebpfMonWaiterWake(&waiter);
    ebpfMonWaiterWake(&waiter);
    testOk(ebpfMonWaiterWait(&waiter, -1, 60, &woken) && woken, "it was woken before it waited");
    testOk(!ebpfMonWaiterWait(&waiter, -1, 0, &woken) && !woken, "two calls count once");
    begin = ebpfMonClockMonotonic();
    epicsThreadCreate("wake", epicsThreadPriorityMedium, epicsThreadGetStackSize(epicsThreadStackSmall), wakeLater,
                      &waiter);
    testOk(ebpfMonWaiterWait(&waiter, pipes[0], HUGE_VAL, &woken) && woken, "another thread wakes it");
    testOk(ebpfMonClockMonotonic() - begin >= 40000000, "after 50 ms");
    testOk(!ebpfMonWaiterWait(&waiter, pipes[0], -1, &woken), "a time below 0 is 0");
    testOk(write(pipes[1], "x", 1) == 1 && ebpfMonWaiterWait(&waiter, pipes[0], 60, &woken) && !woken,
           "the file is readable");
    ebpfMonWaiterEnd(&waiter);
    testOk(waiter.file == -1, "its file is closed");
    close(pipes[0]);
    close(pipes[1]);
    return testDone();
}
