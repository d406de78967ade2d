/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "query/queryRows.h"

/* --- QueryRows --- */

/* query/queryRows.h and query/queryKeyText.h: rows from cells of the kernel part, without the kernel part. The expected
 * values are computed here from the events themselves. */

#define KEY_SIZE 16 /* the name of a thread */

static const ebpfMonQueryNames noNames; /* no IOC, function or lock is known */
static ebpfMonQueryResult result;

/* The only query of this text. */
static ebpfMonQuerySet *parse(const char *text)
{
    char why[200];
    ebpfMonQuerySet *set = ebpfMonQueryParse("test", text, strlen(text), why, sizeof(why));

    if (!set || set->count != 1)
        testAbort("%s", why);
    return set;
}

/* Adds an event to a cell, as the kernel part does it for a log2 histogram. */
static void addEvent(struct ebpfMonQueryCell *cell, int64_t value)
{
    uint64_t ordered = EBPFMON_QUERY_ORDER(value);

    cell->count++;
    cell->sum += value;
    cell->last = value;
    cell->high = ordered > cell->high ? ordered : cell->high;
    cell->low = ~ordered > cell->low ? ~ordered : cell->low;
}

static void addThread(ebpfMonQueryRows *rows, const char *thread, const struct ebpfMonQueryCell *cell)
{
    uint8_t key[EBPFMON_QUERY_KEY_SIZE] = "";

    memcpy(key, thread, strlen(thread));
    ebpfMonQueryRowsAdd(rows, key, cell);
}

/* The key of a row that is published; "": there are not so many. */
static const char *keyOf(unsigned n)
{
    return n < result.rows ? result.row[n].key[0] : "";
}

static void copyRows(const ebpfMonQueryRows *rows)
{
    memset(&result, 0, sizeof(result));
    ebpfMonQueryRowsCopy(rows, &result);
}

static void testValues(void)
{
    ebpfMonQuerySet *set = parse(
        "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
        " \"value\": {\"arg\": 1, \"as\": \"int64\"}}]}");
    ebpfMonQueryRows *rows = ebpfMonQueryRowsNew(set->spec, KEY_SIZE);
    struct ebpfMonQueryCell cell = { 0 }, empty = { 0 }, other = { 0 };
    const ebpfMonQueryRow *row = result.row;

    testDiag("the values of a row");
    addEvent(&cell, -7);
    addEvent(&cell, 20);
    addEvent(&cell, 5);
    ebpfMonQueryRowsBegin(rows);
    addThread(rows, "scan-1", &cell);
    addThread(rows, "nobody", &empty);
    ebpfMonQueryRowsEnd(rows, &noNames, 0);
    copyRows(rows);
    testOk(result.rows == 1 && result.found == 1 && strcmp(keyOf(0), "scan-1") == 0, "a cell without events is no row");
    testOk(row->count == 3 && row->sum == 18 && row->mean == 6 && row->min == -7 && row->max == 20 && row->last == 5,
           "%g events, sum %g, mean %g, from %g to %g, the last %g", row->count, row->sum, row->mean, row->min,
           row->max, row->last);
    testOk(isnan(row->p50) && isnan(row->p99), "without a histogram there are no percentiles");
    testOk(row->rate == 0, "the first look has no rate");

    for (int i = 0; i < 10; i++)
        addEvent(&cell, 1);
    addEvent(&other, 3);
    ebpfMonQueryRowsBegin(rows);
    addThread(rows, "cbLow", &other);
    addThread(rows, "scan-1", &cell);
    ebpfMonQueryRowsEnd(rows, &noNames, 4);
    copyRows(rows);
    testOk(result.rows == 2 && strcmp(keyOf(0), "scan-1") == 0 && strcmp(keyOf(1), "cbLow") == 0,
           "most events come first");
    testOk(row[0].rate == 2.5, "the rate is that of this interval: %g", row[0].rate);
    testOk(row[1].rate == 0.25 && row[1].max == 3 && row[1].min == 3, "a new row has one, too: %g", row[1].rate);

    ebpfMonQueryRowsBegin(rows);
    ebpfMonQueryRowsEnd(rows, &noNames, 4);
    copyRows(rows);
    testOk(result.rows == 2 && row[0].count == 13 && row[0].rate == 0, "a row that is not read again keeps its values");
    ebpfMonQueryRowsFree(rows);
    ebpfMonQueryRowsFree(NULL);
    free(set);
}

/* What is published, of many keys. */
static void testOrder(void)
{
    ebpfMonQuerySet *set = parse(
        "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
        " \"value\": {\"arg\": 1, \"as\": \"int64\"}, \"top\": 3, \"sort\": \"max\"}]}");
    ebpfMonQueryRows *rows = ebpfMonQueryRowsNew(set->spec, KEY_SIZE);
    char thread[16];
    unsigned n, wrong = 0;

    testDiag("which rows are published");
    for (unsigned look = 0; look < 3; look++) {
        ebpfMonQueryRowsBegin(rows);
        for (n = 0; n < 200 * (look + 1); n++) { /* each look finds new keys */
            struct ebpfMonQueryCell cell = { 0 };

            addEvent(&cell, n * 37 % 600);
            snprintf(thread, sizeof(thread), "thread%u", n * 7 % (200 * (look + 1)));
            addThread(rows, thread, &cell);
        }
        ebpfMonQueryRowsEnd(rows, &noNames, 1);
        copyRows(rows);
        wrong += result.found != 200 * (look + 1) || result.rows != 3;
    }
    testOk(!wrong, "all of %u keys are counted, three are published", result.found);
    testOk(result.row[0].max == 599 && result.row[1].max == 598 && result.row[2].max == 597,
           "the greatest three: %g, %g, %g", result.row[0].max, result.row[1].max, result.row[2].max);
    ebpfMonQueryRowsFree(rows);
    free(set);
}

static void testHistogram(void)
{
    ebpfMonQuerySet *set = parse(
        "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
        " \"value\": {\"arg\": 1, \"as\": \"int64\"}, \"histogram\": \"log2\", \"sample\": 10}]}");
    ebpfMonQueryRows *rows = ebpfMonQueryRowsNew(set->spec, KEY_SIZE);
    struct ebpfMonQueryCell cell = { 0 };
    double events = 0;

    testDiag("the histogram, of one event in ten");
    for (int i = 0; i < 100; i++)
        addEvent(&cell, i < 90 ? 3 : 6);
    cell.hist[3] = 90; /* small values have a bucket of their own */
    cell.hist[6] = 10;
    ebpfMonQueryRowsBegin(rows);
    addThread(rows, "scan-1", &cell);
    addThread(rows, "scan-2", &cell);
    ebpfMonQueryRowsEnd(rows, &noNames, 1);
    copyRows(rows);
    testOk(result.row[0].count == 1000 && result.row[0].mean == 3.3, "an event counts ten times, a mean does not");
    testOk(result.row[0].p50 == 3 && result.row[0].p90 == 3 && result.row[0].p99 == 6, "percentiles: %g, %g, %g",
           result.row[0].p50, result.row[0].p90, result.row[0].p99);
    for (unsigned i = 0; i < result.bars; i++)
        events += result.hist[i];
    testOk(events == 2000, "the histogram has the events of both rows: %g", events);
    testOk(result.bars > 1 && result.histEdge[0] <= 3 && result.histEdge[result.bars - 1] <= 6 &&
               result.hist[0] == 1800 && result.hist[result.bars - 1] == 200,
           "zeros at its ends are left out");
    ebpfMonQueryRowsFree(rows);
    free(set);
}

/* Looks at one row, with what its cell has by now. */
static void look(ebpfMonQueryRows *rows, const struct ebpfMonQueryCell *cell)
{
    ebpfMonQueryRowsBegin(rows);
    addThread(rows, "scan-1", cell);
    ebpfMonQueryRowsEnd(rows, &noNames, 1);
    copyRows(rows);
}

/* Values that are greater than the last bucket begins, and sums that 64 bits cannot hold. */
static void testGreatValues(void)
{
    ebpfMonQuerySet *set = parse(
        "{\"queries\": [{\"name\": \"Q\", \"source\": {\"function\": \"f\"}, \"keys\": [\"thread\"],"
        " \"value\": {\"arg\": 1, \"at\": [0], \"as\": \"double\"}, \"histogram\": \"log2\", \"sort\": \"sum\"}]}");
    const double great = 1.3e9, most = 0x1p42;
    int64_t fixed = ebpfMonQueryDoubleFixed(*(const uint64_t *)&great);
    ebpfMonQueryRows *rows = ebpfMonQueryRowsNew(set->spec, KEY_SIZE);
    struct ebpfMonQueryCell cell = { 0 };
    const ebpfMonQueryRow *row = result.row;
    double events = 0;

    testDiag("great values");
    for (int i = 0; i < 10; i++, events++)
        addEvent(&cell, fixed);
    cell.hist[ebpfMonQueryBucket(fixed)] = 10;
    look(rows, &cell);
    testOk(row->p50 == great && row->p99 == great && row->max == great, "the last bucket has no edge: %g, %g, %g",
           row->p50, row->p99, row->max);
    testOk(result.now.max == great, "nor for the greatest one since the last look: %g", result.now.max);
    for (int n = 0; n < 100; n++) {
        for (int i = 0; i < 1000; i++, events++)
            addEvent(&cell, fixed);
        look(rows, &cell);
    }
    testOk((int64_t)cell.sum / 0x1p20 != great * events && row->sum == great * events && row->mean == great,
           "the sum of the cell has wrapped: of %g events it is %g, the mean %g", events, row->sum, row->mean);
    testOk(result.now.sumRate == great * 1000 && result.now.mean == great, "also of one look: %g, %g",
           result.now.sumRate, result.now.mean);

    for (int i = 0; i < 2; i++)
        addEvent(&cell, ebpfMonQueryDoubleFixed(*(const uint64_t *)&most));
    look(rows, &cell);
    testOk(isnan(row->sum) && isnan(row->mean) && isnan(result.now.mean) && row->max == most &&
               row->count == events + 2,
           "it may have wrapped between two looks: it is not known any more, other values are");
    addEvent(&cell, fixed);
    look(rows, &cell);
    testOk(isnan(row->sum) && result.now.sumRate == great && result.now.mean == great, "the next look has its own");
    ebpfMonQueryRowsFree(rows);
    free(set);
}

static void testNoNumbers(void)
{
    const double number[] = { 0, -0.0, 1.3e9, INFINITY, -INFINITY, 0x1p-1074 }, none[] = { NAN, -NAN };
    unsigned wrong = 0;

    for (size_t i = 0; i < sizeof(number) / sizeof(number[0]); i++)
        wrong += ebpfMonQueryDoubleIsNan(((const uint64_t *)number)[i]) != 0;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        wrong += ebpfMonQueryDoubleIsNan(((const uint64_t *)none)[i]) == 0;
    wrong += !ebpfMonQueryDoubleIsNan(ebpfMonQueryWidenFloat(0x7f800001)) ||
             ebpfMonQueryDoubleIsNan(ebpfMonQueryWidenFloat(0x7f800000));
    testOk(!wrong, "what is no number is told from numbers");
}

/* The text of a key. */
static const char *textOf(int what, int type, const void *bytes, unsigned size)
{
    static char text[EBPFMON_QUERY_CELL_SIZE];
    const struct ebpfMonQueryField field = { .what = (uint8_t)what, .type = (uint8_t)type, .size = (uint8_t)size };
    uint8_t key[EBPFMON_QUERY_KEY_SIZE] = { 0 };

    memcpy(key, bytes, size);
    if (ebpfMonQueryKeyText(&field, key, &noNames, 0, text, sizeof(text)))
        return "later";
    return text;
}

static void testTexts(void)
{
    static ebpfMonQueryFunction known[] = { { .iocId = 2, .address = 0x1000, .name = "dbProcess" } };
    const struct ebpfMonQueryField function = { .what = EBPFMON_QUERY_FUNCTION, .size = 16 };
    const ebpfMonQueryNames names = { .function = known, .functions = 1 };
    const uint64_t inOne[2] = { 1, 0x1000 }, inTwo[2] = { 2, 0x1000 }, none[3] = { 0, 0, 0 };
    struct ebpfMonQueryWho who = { .kind = EBPFMON_QUERY_BY_CA, .user = "anna", .host = "office" };
    char thread[16] = "bad\nname";
    int64_t minus = -5;
    double half = 0.5;
    char text[EBPFMON_QUERY_CELL_SIZE];

    testDiag("texts of keys");
    testOk(!strcmp(textOf(EBPFMON_QUERY_ARG, EBPFMON_QUERY_S64, &minus, 8), "-5"), "a signed number");
    testOk(!strcmp(textOf(EBPFMON_QUERY_ARG, EBPFMON_QUERY_U64, &minus, 8), "18446744073709551611"), "an unsigned one");
    testOk(!strcmp(textOf(EBPFMON_QUERY_ARG, EBPFMON_QUERY_F64, &half, 8), "0.5"), "a double");
    testOk(!strchr(textOf(EBPFMON_QUERY_THREAD, 0, thread, 16), '\n'),
           "no control character of a thread's name is published");
    testOk(!strcmp(textOf(EBPFMON_QUERY_SYSCALL, 0, (uint64_t[]){ 0 }, 8), "read"), "a system call has its name");
    testOk(!strcmp(textOf(EBPFMON_QUERY_IOC, 0, (uint64_t[]){ 7 }, 8), "IOC 7") &&
           !strcmp(textOf(EBPFMON_QUERY_IOC, 0, none, 8), "-"), "an IOC that has ended has its number, no IOC is -");
    testOk(!strcmp(textOf(EBPFMON_QUERY_ROOT, 0, inOne, 16), "0x1000") &&
               !strcmp(textOf(EBPFMON_QUERY_ROOT, 0, none, 16), "-"),
           "a record that is not known has its address, no record is -");
    testOk(!strcmp(textOf(EBPFMON_QUERY_CLIENT, 0, &who, sizeof(who)), "anna@office"), "a client of CA");
    who.kind = EBPFMON_QUERY_BY_PEER;
    memset(who.host, 0, sizeof(who.host));
    who.peer.addr = 0x0100007f;
    who.peer.port = 0x1234;
    testOk(!strncmp(textOf(EBPFMON_QUERY_CLIENT, 0, &who, sizeof(who)), "127.0.0.1:", 10), "a client with an address");
    who.host[0] = (char)0xfd;
    who.host[15] = 1;
    testOk(!strncmp(textOf(EBPFMON_QUERY_CLIENT, 0, &who, sizeof(who)), "[fd00::1]:", 10), "one with an IPv6 address");
    ebpfMonQueryKeyText(&function, (const uint8_t *)inTwo, &names, 0, text, sizeof(text));
    testOk(!strcmp(text, "dbProcess"), "a function has its name");
    ebpfMonQueryKeyText(&function, (const uint8_t *)inOne, &names, 0, text, sizeof(text));
    testOk(!strcmp(text, "0x1000"), "the same address in another IOC is another function");
}

static void runQueryRows(void)
{
    testValues();
    testOrder();
    testHistogram();
    testGreatValues();
    testNoNumbers();
    testTexts();
}

/* --- QueryHeat --- */

/* query/queryRows.h: columns of time, rows that are shown, a thread that was late, counts that became smaller. */

#define ROWS    EBPFMON_QUERY_HEAT_ROWS
#define COLUMNS EBPFMON_QUERY_HEAT_COLUMNS

static ebpfMonQuerySpec spec = { .interval = 1, .history = 10, .scale = 1 };
static ebpfMonQueryResult heatResult;

/* A cell: "row" from the bottom, "column" from the newest. */
static double cellOf(const ebpfMonQueryHeat *h, unsigned row, unsigned column)
{
    ebpfMonQueryHeatCopy(h, &heatResult);
    return heatResult.heat[(ROWS - 1 - row) * COLUMNS + COLUMNS - 1 - column];
}

static double edgeOf(unsigned row)
{
    return heatResult.heatEdge[ROWS - 1 - row];
}

static void testColumns(void)
{
    uint64_t bar[EBPFMON_QUERY_BARS_MAX] = { 0 };
    ebpfMonQueryHeat *h;

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LINEAR, .step = 5, .steps = 4, .sample = 1 };
    h = ebpfMonQueryHeatNew(&spec, 100);
    testOk(isnan(cellOf(h, 1, 0)), "at the begin no cell is known");
    bar[1] = 3;
    ebpfMonQueryHeatAdd(h, bar, 105);
    testOk(isnan(cellOf(h, 1, 0)), "… nor is one before the first column is over");
    ebpfMonQueryHeatAdd(h, bar, 109.7);
    testOk(cellOf(h, 1, 0) == 3 && cellOf(h, 2, 0) == 0 && isnan(cellOf(h, 1, 1)),
           "a look that is early by half an interval ends the column");
    testOk(edgeOf(0) == -5 && edgeOf(1) == 0 && edgeOf(5) == 20 && isnan(cellOf(h, 6, 0)),
           "there are six bars with their edges");
    bar[1] = 4;
    ebpfMonQueryHeatAdd(h, bar, 119.6);
    testOk(cellOf(h, 1, 0) == 1 && cellOf(h, 1, 1) == 3, "a column has only what came since the one before");
    bar[1] = 10;
    ebpfMonQueryHeatAdd(h, bar, 151);
    testOk(cellOf(h, 1, 0) == 6 && isnan(cellOf(h, 1, 1)) && isnan(cellOf(h, 1, 2)) && cellOf(h, 1, 3) == 1,
           "a thread that is late leaves columns empty");
    bar[1] = 2;
    ebpfMonQueryHeatAdd(h, bar, 160);
    testOk(isnan(cellOf(h, 1, 0)), "a count that became smaller gives an unknown cell");
    bar[1] = 5;
    ebpfMonQueryHeatAdd(h, bar, 170);
    testOk(cellOf(h, 1, 0) == 3, "… and the next count gives a known one");
    ebpfMonQueryHeatAdd(h, bar, 1e6);
    testOk(cellOf(h, 1, 0) == 0 && isnan(cellOf(h, 1, COLUMNS - 1)),
           "after a very long time all old columns are unknown");
    ebpfMonQueryHeatFree(h);
}

static void testRows(void)
{
    uint64_t bar[EBPFMON_QUERY_BARS_MAX] = { 0 };
    ebpfMonQueryHeat *h;

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LINEAR, .step = 1, .steps = 40, .sample = 2 };
    h = ebpfMonQueryHeatNew(&spec, 0);
    bar[2] = 1;
    bar[3] = 4;
    bar[41] = 7;
    ebpfMonQueryHeatAdd(h, bar, 10);
    testOk(cellOf(h, 1, 0) == 10 && cellOf(h, 20, 0) == 14 && cellOf(h, 0, 0) == 0,
           "a row takes two bars, and counts are multiplied by the sample");
    testOk(edgeOf(0) == -1 && edgeOf(1) == 1 && edgeOf(20) == 39, "… and a row has the edge of its lower bar");
    ebpfMonQueryHeatFree(h);

    spec.order.plan = (struct ebpfMonQueryPlan){ .hist = EBPFMON_QUERY_LOG2, .sample = 1 };
    h = ebpfMonQueryHeatNew(&spec, 0);
    memset(bar, 0, sizeof(bar));
    bar[10] = 1;
    ebpfMonQueryHeatAdd(h, bar, 10);
    testOk(cellOf(h, 0, 0) == 1 && edgeOf(0) == 2048, "rows are powers of two from the least value on: %g", edgeOf(0));
    bar[47] = 2;
    ebpfMonQueryHeatAdd(h, bar, 20);
    testOk(cellOf(h, 31, 0) == 2 && edgeOf(0) == ebpfMonQueryBarEdge(&spec.order.plan, 16),
           "if not all fit, the rows of the greatest values are kept");
    ebpfMonQueryHeatFree(h);
}

static void runQueryHeat(void)
{
    testColumns();
    testRows();
}

MAIN(testQueryRows)
{
    testPlan(8 + 2 + 4 + 6 + 1 + 12 + 13);
    runQueryRows();
    runQueryHeat();
    return testDone();
}
