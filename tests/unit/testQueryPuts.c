/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryCells.h"

/* --- QueryPuts --- */

/* query/queryCells.h: what each put had is one value of its row, unless 64 bits could not hold it. */

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

static void runQueryPuts(void)
{
    const char *query = "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
                        " \"value\": {\"arg\": 1, \"as\": \"int64\"}, \"perPut\": \"sum\"}]}";
    char why[200];
    ebpfMonQuerySet *set = ebpfMonQueryParse("test", query, strlen(query), why, sizeof(why));
    ebpfMonQueryPuts *puts;

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
}

/* --- QuerySites --- */

/* query/queryCells.h and query/queryCells.h: cells that the user part fills, against the events themselves, and what is
 * left of the kernel part's cells. Its own list of events is the truth. */

#define SITES  5
#define EVENTS 4000

static const char log2Query[] =
    "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"tid\", \"site\"], "
    "\"value\": {\"arg\": 1}, \"histogram\": \"log2\", \"maxKeys\": 100}]}";
static const char smallQuery[] =
    "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"tid\", \"site\"], "
    "\"maxKeys\": 3}]}";

static ebpfMonQuerySet *parse(const char *text)
{
    char why[300];
    ebpfMonQuerySet *set = ebpfMonQueryParse("test", text, strlen(text), why, sizeof(why));

    if (!set)
        testAbort("%s", why);
    return set;
}

/* What is read back. */
typedef struct {
    const ebpfMonQuerySites *sites;
    uint64_t count[SITES], bars;
    int64_t  sum[SITES], low[SITES], high[SITES];
    unsigned cells, wrong;
} Found;

static void addFound(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    Found *f = arg;
    uint64_t word[2];
    unsigned site;

    memcpy(word, key, sizeof(word));
    f->cells++;
    if (sscanf(ebpfMonQuerySitesGetName(f->sites, word[1]), "site%u", &site) != 1 || site >= SITES ||
        word[0] != site % 2) {
        f->wrong++;
        return;
    }
    f->count[site] += cell->count;
    f->sum[site] += cell->sum;
    f->low[site] = (int64_t)(~cell->low ^ 1ull << 63);
    f->high[site] = (int64_t)(cell->high ^ 1ull << 63);
    for (unsigned b = 0; b < EBPFMON_QUERY_BUCKETS; b++)
        f->bars += cell->hist[b];
}

/* Events with a site, and events whose stack did not come: these are what is left of the kernel part's cell. */
static void testSites(void)
{
    ebpfMonQuerySet *set = parse(log2Query);
    const struct ebpfMonQueryPlan *plan = &set->spec->order.plan;
    ebpfMonQuerySites *sites = ebpfMonQuerySitesNew(set->spec, 16);
    struct ebpfMonQueryCell kernel[2], lost[2];
    Found truth = { .sites = sites }, found = { .sites = sites };
    unsigned wrong = 0;

    memset(kernel, 0, sizeof(kernel));
    memset(lost, 0, sizeof(lost));
    memset(truth.low, 0x7f, sizeof(truth.low));
    for (unsigned i = 0; i < EVENTS; i++) {
        unsigned site = i * 7 % SITES;
        int64_t value = (int64_t)(i * 2654435761u % 100000) - 100;
        uint64_t key[2] = { site % 2, 0 };
        char name[16];

        ebpfMonQueryCellAdd(plan, &kernel[key[0]], value, i);
        if (i % 11 == 3) {
            ebpfMonQueryCellAdd(plan, &lost[key[0]], value, i);
            continue;
        }
        snprintf(name, sizeof(name), "site%u", site);
        wrong += ebpfMonQuerySitesAdd(sites, key, name, value, i) != 0;
        truth.count[site]++;
        truth.sum[site] += value;
        truth.low[site] = value < truth.low[site] ? value : truth.low[site];
        truth.high[site] = value > truth.high[site] ? value : truth.high[site];
    }
    ebpfMonQuerySitesRead(sites, addFound, &found);
    testOk(!wrong && !found.wrong && found.cells == SITES, "%u sites, each with the thread of its events", found.cells);
    testOk(!memcmp(found.count, truth.count, sizeof(truth.count)) && !memcmp(found.sum, truth.sum, sizeof(truth.sum)),
           "counts and sums");
    testOk(!memcmp(found.low, truth.low, sizeof(truth.low)) && !memcmp(found.high, truth.high, sizeof(truth.high)),
           "least and greatest");
    testOk(found.bars == EVENTS - lost[0].count - lost[1].count, "each value is in the histogram: %llu",
           (unsigned long long)found.bars);
    for (unsigned t = 0; t < 2; t++) {
        uint64_t key[2] = { t, 0 };

        ebpfMonQuerySitesSubtract(sites, (const uint8_t *)key, &kernel[t]);
        testOk(kernel[t].count == lost[t].count && kernel[t].sum == lost[t].sum &&
                   !memcmp(kernel[t].hist, lost[t].hist, sizeof(lost[t].hist)),
               "what is left are the events without a stack: %llu", (unsigned long long)lost[t].count);
    }
    ebpfMonQuerySitesSubtract(sites, (const uint8_t *)(uint64_t[]){ 1, 0 }, &kernel[1]);
    testOk(!kernel[1].count && !kernel[1].sum, "a cell that was read before the last stacks is empty, and not below 0");
    ebpfMonQuerySitesFree(sites);
    ebpfMonQuerySitesFree(NULL);
    free(set);
}

/* There is room for "maxKeys" keys. What does not fit is refused, and changes nothing. */
static void testFull(void)
{
    ebpfMonQuerySet *set = parse(smallQuery);
    ebpfMonQuerySites *sites = ebpfMonQuerySitesNew(set->spec, 16);
    Found found = { .sites = sites };
    unsigned refused = 0;

    for (unsigned round = 0; round < 3; round++)
        for (unsigned site = 0; site < 40; site++) {
            char name[16];

            snprintf(name, sizeof(name), "site%u", site);
            refused += ebpfMonQuerySitesAdd(sites, (uint64_t[]){ 0, 0 }, name, 1, 1) != 0;
        }
    found.sites = sites;
    ebpfMonQuerySitesRead(sites, addFound, &found);
    testOk(found.cells == 5 && refused == 3 * 35, "%u cells, %u events refused", found.cells, refused);
    testOk(found.count[0] == 3 && found.count[2] == 3 && !found.sum[0],
           "the first ones count on; without a value there is no sum");
    testOk(!strcmp(ebpfMonQuerySitesGetName(sites, 0), "-") && !strcmp(ebpfMonQuerySitesGetName(sites, 999), "-") &&
           !strcmp(ebpfMonQuerySitesGetName(NULL, 1), "-"), "a site that is not known is -");
    ebpfMonQuerySitesFree(sites);
    free(set);
}

static void testCells(void)
{
    ebpfMonQueryCells cells = { 0 };
    uint8_t key[EBPFMON_QUERY_KEY_SIZE] = { 0 };
    unsigned wrong = 0;

    for (unsigned i = 0; i < 1000; i++) {
        uint32_t n = i * 377 % 1000; /* each number once, in no order */

        memcpy(key, &n, sizeof(n));
        wrong += ebpfMonQueryCellsFind(&cells, key) != NULL;
        wrong += ebpfMonQueryCellsGet(&cells, key, 1000) == NULL;
        wrong += ebpfMonQueryCellsFind(&cells, key) != ebpfMonQueryCellsGet(&cells, key, 0);
    }
    for (size_t i = 1; i < cells.count; i++)
        wrong += memcmp(cells.cell[i - 1]->key, cells.cell[i]->key, sizeof(key)) >= 0;
    testOk(!wrong && cells.count == 1000, "%zu cells, sorted, each found again", cells.count);
    memset(key, 0xff, sizeof(key));
    testOk1(!ebpfMonQueryCellsGet(&cells, key, 1000) && cells.count == 1000);
    ebpfMonQueryCellsClear(&cells);
    testOk1(!cells.count && !cells.cell);
}

static void runQuerySites(void)
{
    testSites();
    testFull();
    testCells();
}

MAIN(testQueryPuts)
{
    testPlan(3 + 7 + 3 + 3);
    runQueryPuts();
    runQuerySites();
    return testDone();
}
