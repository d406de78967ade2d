/* SPDX-License-Identifier: BSD-3-Clause */
/* Each chain of a finished trace finds the id of this trace, as long as there is room. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/finishedTraces.h"

MAIN(testFinishedTraces)
{
    ebpfMonFinishedTraces *finished = ebpfMonFinishedTracesNew();
    ebpfMonChainId a = { .iocId = 1, .tid = 10, .begin = 1000 }, b = a, c;
    const uint8_t id[16] = { 1, 2, 3 }, other[16] = { 4, 5, 6 };
    unsigned found = 0, wrong = 0;

    testPlan(7);
    testOk(!ebpfMonFinishedTracesFind(finished, &a), "no trace is known at first");
    ebpfMonFinishedTracesAdd(finished, &a, id);
    testOk(ebpfMonFinishedTracesFind(finished, &a) && memcmp(ebpfMonFinishedTracesFind(finished, &a), id, 16) == 0,
           "a chain is found with its trace's id");
    b.iocId = 2;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "a chain of another IOC is not found");
    b = a;
    b.tid = 11;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor a chain of another thread");
    b = a;
    b.begin++;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor another chain of the same thread");
    ebpfMonFinishedTracesAdd(finished, &a, other);
    testOk(memcmp(ebpfMonFinishedTracesFind(finished, &a), other, 16) == 0, "of two ids the newer one counts");
    for (uint32_t i = 0; i < 100000; i++) {
        uint8_t its[16] = { 0 };

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        memcpy(its, &i, sizeof(i));
        ebpfMonFinishedTracesAdd(finished, &c, its);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        const uint8_t *its;

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        its = ebpfMonFinishedTracesFind(finished, &c);
        found += its != NULL;
        wrong += its && memcmp(its, &i, sizeof(i)) != 0;
    }
    testOk(found > 8000 && !wrong, "of 100000 chains the last ones are known: %u, %u with a wrong id", found, wrong);
    ebpfMonFinishedTracesFree(finished);
    return testDone();
}
