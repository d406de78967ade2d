/* SPDX-License-Identifier: BSD-3-Clause */
/* Which link a channel's address names: grown, cleared and filled again, as records' links are read anew. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/linkTable.h"

#define LINKS 50000u
#define CHAN(i) (0x7f0000001000ull + (uint64_t)(i) * 0x60)

static ebpfMonLinkTable *table;

static unsigned wrong(uint32_t gone)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < LINKS; i++) {
        ebpfMonLinkOwner o;
        int found = ebpfMonLinkTableFind(table, CHAN(i), &o) == 0;

        n += i / 10 == gone ? found : !found || o.rec != i / 10 || o.field != i % 10;
    }
    return n;
}

static void add(uint32_t i)
{
    ebpfMonLinkTableAdd(table, CHAN(i), (ebpfMonLinkOwner){ .rec = i / 10, .field = i % 10 });
}

MAIN(testLinkTable)
{
    ebpfMonLinkOwner o;

    testPlan(7);
    table = ebpfMonLinkTableNew();
    testOk(ebpfMonLinkTableFind(table, CHAN(1), &o) == -1, "nothing in an empty one");
    for (uint32_t i = 0; i < LINKS; i++)
        add(i);
    testOk1(wrong(UINT32_MAX) == 0);
    ebpfMonLinkTableAdd(table, 0, o = (ebpfMonLinkOwner){ 1, 1 });
    ebpfMonLinkTableAdd(table, 1, o);
    testOk(ebpfMonLinkTableFind(table, 0, &o) == -1 && ebpfMonLinkTableFind(table, 1, &o) == -1, "no addresses");
    ebpfMonLinkTableClear(table, 77);
    testOk(wrong(77) == 0, "one record's links");
    for (unsigned round = 0; round < 2000; round++) {
        ebpfMonLinkTableClear(table, 77);
        for (uint32_t i = 770; i < 780; i++)
            add(i);
    }
    testOk(wrong(UINT32_MAX) == 0, "read anew many times");
    ebpfMonLinkTableAdd(table, CHAN(5), (ebpfMonLinkOwner){ .rec = 9, .field = 3 });
    testOk(ebpfMonLinkTableFind(table, CHAN(5), &o) == 0 && o.rec == 9, "a channel's memory is another link's now");
    ebpfMonLinkTableClear(table, UINT32_MAX);
    testOk1(ebpfMonLinkTableFind(table, CHAN(5), &o) == -1);
    ebpfMonLinkTableFree(table);
    return testDone();
}
