/* SPDX-License-Identifier: BSD-3-Clause */
/* Each chain of a finished trace finds the id of this trace, as long as there is room. */
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traces.h"

static void add(ebpfMonFinishedTraces *finished, const ebpfMonChainId *chain, const ebpfMonChainId *owner,
                const uint8_t traceId[16])
{
    ebpfMonFinishedChain c = { .chain = *chain, .owner = *owner };

    memcpy(c.traceId, traceId, sizeof(c.traceId));
    ebpfMonFinishedTracesAdd(finished, &c);
}

static int hasId(const ebpfMonFinishedChain *c, const uint8_t traceId[16])
{
    return c && memcmp(c->traceId, traceId, sizeof(c->traceId)) == 0;
}

MAIN(testFinishedTraces)
{
    ebpfMonFinishedTraces *finished = ebpfMonFinishedTracesNew();
    ebpfMonChainId a = { .iocId = 1, .tid = 10, .begin = 1000 }, b = a, c, other = { 1, 11, 900 };
    const uint8_t id[16] = { 1, 2, 3 }, newer[16] = { 4, 5, 6 };
    unsigned found = 0, wrong = 0;

    testPlan(7);
    testOk(!ebpfMonFinishedTracesFind(finished, &a), "no trace is known at first");
    add(finished, &a, &other, id);
    testOk(hasId(ebpfMonFinishedTracesFind(finished, &a), id) &&
               ebpfMonChainIdIsSame(&ebpfMonFinishedTracesFind(finished, &a)->owner, &other),
           "a chain is found with its trace's id, and with the chain that has its span");
    b.iocId = 2;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "a chain of another IOC is not found");
    b = a;
    b.tid = 11;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor a chain of another thread");
    b = a;
    b.begin++;
    testOk(!ebpfMonFinishedTracesFind(finished, &b), "nor another chain of the same thread");
    add(finished, &a, &a, newer);
    testOk(hasId(ebpfMonFinishedTracesFind(finished, &a), newer), "of two ids the newer one counts");
    for (uint32_t i = 0; i < 100000; i++) {
        uint8_t its[16] = { 0 };

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        memcpy(its, &i, sizeof(i));
        add(finished, &c, &c, its);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        const ebpfMonFinishedChain *its;

        c = (ebpfMonChainId){ .iocId = 3, .tid = 20 + i % 7, .begin = 5000 + 977ull * i };
        its = ebpfMonFinishedTracesFind(finished, &c);
        found += its != NULL;
        wrong += its && memcmp(its->traceId, &i, sizeof(i)) != 0;
    }
    testOk(found > 8000 && !wrong, "of 100000 chains the last ones are known: %u, %u with a wrong id", found, wrong);
    ebpfMonFinishedTracesFree(finished);
    return testDone();
}
