/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the link of a DBADDR's address. The table grows, is cleared, and is filled again when links of records are
 * read again. */
#include <epicsUnitTest.h>
#include <testMain.h>

#include <string.h>

#include "ioc/linkTable.h"
#include "ioc/baseLink.h"

#define LINKS 50000u
#define ADDR(i) (0x7f0000001000ull + (uint64_t)(i) * 0x60)

static ebpfMonLinkTable *table;

static unsigned wrong(uint32_t gone)
{
    unsigned n = 0;

    for (uint32_t i = 0; i < LINKS; i++) {
        ebpfMonLinkOwner o;
        int found = ebpfMonLinkTableFind(table, ADDR(i), &o) == 0;

        n += i / 10 == gone ? found : !found || o.rec != i / 10 || o.field != i % 10;
    }
    return n;
}

static void add(ebpfMonLinkTable *to, uint32_t i)
{
    ebpfMonLinkTableAdd(to, ADDR(i), (ebpfMonLinkOwner){ .rec = i / 10, .field = i % 10 });
}

/* Puts the links first … end - 1 in place of those of record "rec". */
static void replace(uint32_t rec, uint32_t first, uint32_t end)
{
    ebpfMonLinkTable *from = ebpfMonLinkTableNew();

    for (uint32_t i = first; i < end; i++)
        add(from, i);
    ebpfMonLinkTableReplace(table, rec, from);
    ebpfMonLinkTableFree(from);
}

/* Several texts may name one field. */
static void testNames(void)
{
    ebpfMonLinkTable *from = ebpfMonLinkTableNew();
    ebpfMonLinkOwner o[2] = { { 0, 0 } };

    for (uint32_t rec = 1; rec <= 3; rec++)
        ebpfMonLinkTableAddName(table, ADDR(1), (ebpfMonLinkOwner){ .rec = rec, .field = 7 });
    ebpfMonLinkTableAddName(table, ADDR(2), (ebpfMonLinkOwner){ .rec = 1, .field = 8 });
    testOk(ebpfMonLinkTableFindNames(table, ADDR(1), o, 2) == 3 && o[0].rec == 1 && o[1].rec == 2 &&
           ebpfMonLinkTableFindNames(table, ADDR(2), o, 2) == 1 && o[0].field == 8 &&
           ebpfMonLinkTableFindNames(table, ADDR(3), o, 2) == 0, "texts that name a field");
    ebpfMonLinkTableAddName(from, ADDR(3), (ebpfMonLinkOwner){ .rec = 1, .field = 7 });
    ebpfMonLinkTableReplace(table, 1, from);
    testOk(ebpfMonLinkTableFindNames(table, ADDR(1), o, 2) == 2 &&
           ebpfMonLinkTableFindNames(table, ADDR(2), o, 2) == 0 &&
           ebpfMonLinkTableFindNames(table, ADDR(3), o, 2) == 1, "those of one record are read again");
    ebpfMonLinkTableReplace(table, UINT32_MAX, from);
    testOk(ebpfMonLinkTableFindNames(table, ADDR(3), o, 2) == 1 &&
           ebpfMonLinkTableFindNames(table, ADDR(1), o, 2) == 0 &&
           ebpfMonLinkTableFindNames(from, ADDR(1), o, 2) == 2, "… and those of all");
    ebpfMonLinkTableFree(from);
}

/* ioc/baseLink.h */
static void testPva(void)
{
    static const struct {
        const char *text, *pv;
        int isCp;
    } links[] = {
        { "{\"pva\": \"A:B.C\"}", "A:B.C", 0 },
        { "{pva:{pv:'A', proc:'CP', sevr:false, Q:4}}", "A", 1 },
        { "{\"pva\":{\"proc\":\"CPP\",\"x\":{\"pv\":\"B\"},\"pv\":\"A\"}}", "A", 1 },
        { "{pva:{pv:'A', proc:'PP', field:'CP'}}", "A", 0 },
        { "{calc:{expr:'A', args:[{pva:'B'}]}}", "", 0 },
        { "{calc:{pv:'B'}}", "", 0 },
        { "{const:3}", "", 0 },
        { "{pva:{pv:'A'", "", 0 },
        { "A.B CP", "", 0 },
    };
    const ebpfMonLinkOwner one = { 1, 1 }, two = { 2, 1 };
    uint64_t key = ebpfMonPvaLinkKey("A");
    ebpfMonPvaLink pva;
    ebpfMonLinkOwner o;

    for (unsigned i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        int isLink = ebpfMonPvaLinkParse(links[i].text, &pva) == 0;

        testOk(isLink == !!links[i].pv[0] &&
               (!isLink || (strcmp(pva.pv, links[i].pv) == 0 && pva.isCp == links[i].isCp)), "%s", links[i].text);
    }
    ebpfMonLinkTableAdd(table, key, one);
    ebpfMonLinkTableAdd(table, key, one);
    testOk(ebpfMonLinkTableFind(table, key, &o) == 0 && o.rec == 1, "the link to a PV");
    ebpfMonLinkTableAdd(table, key, two);
    testOk(ebpfMonLinkTableFind(table, key, &o) == 0 && o.rec == EBPFMON_SEVERAL_LINKS, "two links to a PV");
}

MAIN(testLinkTable)
{
    ebpfMonLinkOwner o;

    testPlan(21);
    table = ebpfMonLinkTableNew();
    testOk(ebpfMonLinkTableFind(table, ADDR(1), &o) == -1, "an empty table has no links");
    for (uint32_t i = 0; i < LINKS; i++)
        add(table, i);
    testOk1(wrong(UINT32_MAX) == 0);
    ebpfMonLinkTableAdd(table, 0, o = (ebpfMonLinkOwner){ 1, 1 });
    ebpfMonLinkTableAdd(table, 1, o);
    testOk(ebpfMonLinkTableFind(table, 0, &o) == -1 && ebpfMonLinkTableFind(table, 1, &o) == -1,
           "links without addresses");
    replace(77, 0, 0);
    testOk(wrong(77) == 0, "the links of one record");
    for (unsigned round = 0; round < 2000; round++)
        replace(77, 770, 780);
    testOk(wrong(UINT32_MAX) == 0, "the links are read again many times");
    ebpfMonLinkTableAdd(table, ADDR(5), (ebpfMonLinkOwner){ .rec = 9, .field = 3 });
    testOk(ebpfMonLinkTableFind(table, ADDR(5), &o) == 0 && o.rec == 9,
           "the memory of a DBADDR belongs to another link now");
    replace(UINT32_MAX, 0, 10);
    testOk(ebpfMonLinkTableFind(table, ADDR(5), &o) == 0 && o.rec == 0 &&
           ebpfMonLinkTableFind(table, ADDR(10), &o) == -1, "all links are replaced by others");
    testNames();
    testPva();
    ebpfMonLinkTableFree(table);
    return testDone();
}
