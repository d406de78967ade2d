/* SPDX-License-Identifier: BSD-3-Clause */
/* query/queryCells.h: what each put had is one value of its row, unless 64 bits could not hold it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryCells.h"

#define KEY_SIZE 24 /* the name of a thread, and the number of the put */

static struct ebpfMonQueryCell put, row; /* of the put that is over; what its row has */
static uint8_t key[EBPFMON_QUERY_KEY_SIZE] = "scan-1";

/* Instead of the table of the kernel part. */
int ebpfMonQueryProgramsReadCells(ebpfMonQueryPrograms *programs, ebpfMonQueryCellFn each, void *arg)
{
    each(arg, key, &put);
    return 0;
}

int ebpfMonQueryProgramsTakeCell(ebpfMonQueryPrograms *programs, const uint8_t *which, struct ebpfMonQueryCell *cell)
{
    *cell = put;
    return memcmp(which, key, KEY_SIZE) != 0;
}

static void noteRow(void *arg, const uint8_t *which, const struct ebpfMonQueryCell *cell)
{
    row = *cell;
}

/* A put with two events of this value. */
static void addPut(ebpfMonQueryPuts *puts, const ebpfMonQuerySpec *spec, int64_t value)
{
    memset(&put, 0, sizeof(put));
    for (int i = 0; i < 2; i++)
        ebpfMonQueryCellAdd(&spec->order.plan, &put, value, 1);
    ebpfMonQueryPutsLook(puts, NULL, UINT64_MAX, noteRow, NULL);
}

MAIN(testQueryPuts)
{
    const char *query = "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
                        " \"value\": {\"arg\": 1, \"as\": \"int64\"}, \"perPut\": \"sum\"}]}";
    char why[200];
    ebpfMonQuerySet *set = ebpfMonQueryParse("test", query, strlen(query), why, sizeof(why));
    ebpfMonQueryPuts *puts;

    testPlan(3);
    if (!set)
        testAbort("%s", why);
    puts = ebpfMonQueryPutsNew(set->spec, KEY_SIZE);
    addPut(puts, set->spec, -5);
    testOk(row.count == 1 && row.last == -10 && ebpfMonQueryPutsGetLost(puts) == 0, "the sum of a put is a value");
    addPut(puts, set->spec, 1ll << 62);
    testOk(row.count == 1 && ebpfMonQueryPutsGetLost(puts) == 2,
           "a sum that may have wrapped is not: its events are lost");
    addPut(puts, set->spec, 1ll << 61);
    testOk(row.count == 2 && row.last == 1ll << 62, "the greatest sum that cannot have wrapped is one");
    ebpfMonQueryPutsFree(puts);
    free(set);
    return testDone();
}
