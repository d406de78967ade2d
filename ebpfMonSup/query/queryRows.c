/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsString.h>

#include "common/array.h"
#include "common/clock.h"
#include "query/queryBars.h"
#include "query/queryRows.h"

typedef struct {
    uint8_t key[EBPFMON_QUERY_KEY_SIZE];
    ebpfMonQueryRow row;
    double before;  /* row.count at the last look */
    int    isShown; /* its records match spec->record */
    int    isNamed; /* its texts are complete */
    double seen;    /* monotonic s: when it was first seen */
    uint64_t *bar;  /* its histogram; NULL: it is not needed, or no memory */
} Row;

struct ebpfMonQueryRows {
    const ebpfMonQuerySpec *spec;
    unsigned keySize;
    Row     *row;
    size_t   known;         /* rows of earlier looks, sorted by key */
    size_t   count, room;   /* all rows: those that this look has added follow the known ones, not sorted */
    uint64_t bar[EBPFMON_QUERY_BARS_MAX]; /* the histogram over all keys */
    unsigned *shown;        /* indexes of the rows that match, in the order in which they are published */
    size_t   shownCount, shownRoom;
};

ebpfMonQueryRows *ebpfMonQueryRowsNew(const ebpfMonQuerySpec *spec, unsigned keySize)
{
    ebpfMonQueryRows *r = calloc(1, sizeof(*r));

    if (r) {
        r->spec = spec;
        r->keySize = keySize;
    }
    return r;
}

void ebpfMonQueryRowsFree(ebpfMonQueryRows *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->count; i++)
        free(r->row[i].bar);
    free(r->row);
    free(r->shown);
    free(r);
}

void ebpfMonQueryRowsBegin(ebpfMonQueryRows *r)
{
    r->known = r->count;
    memset(r->bar, 0, sizeof(r->bar));
}

static int compareKeys(const void *a, const void *b)
{
    return memcmp(((const Row *)a)->key, ((const Row *)b)->key, EBPFMON_QUERY_KEY_SIZE);
}

/* Returns a percentile: the upper edge of its bucket, or the greatest value if that is smaller. */
static double findPercentile(const struct ebpfMonQueryCell *cell, double part, double max)
{
    uint64_t sum = 0, want;

    want = (uint64_t)ceil(part * (double)cell->count);
    for (unsigned b = 0; b < EBPFMON_QUERY_BUCKETS; b++) {
        sum += cell->hist[b];
        if (sum >= want && sum)
            return b < 7 ? b : fmin(max, ebpfMonQueryBucketEdge(b + 1));
    }
    return max;
}

static void setValues(const ebpfMonQuerySpec *spec, ebpfMonQueryRow *row, const struct ebpfMonQueryCell *c)
{
    double scale = spec->scale, max = (double)(int64_t)(c->high ^ 1ull << 63);
    int isLog2 = spec->order.plan.hist == EBPFMON_QUERY_LOG2;

    row->count = (double)c->count * spec->order.plan.sample;
    row->sum = (double)c->sum * scale * spec->order.plan.sample;
    row->mean = c->count ? (double)c->sum * scale / (double)c->count : 0;
    row->max = c->count ? max * scale : 0;
    row->min = c->count ? (double)(int64_t)(~c->low ^ 1ull << 63) * scale : 0;
    row->last = (double)c->last * scale;
    row->p50 = isLog2 ? findPercentile(c, 0.5, max) * scale : NAN;
    row->p90 = isLog2 ? findPercentile(c, 0.9, max) * scale : NAN;
    row->p99 = isLog2 ? findPercentile(c, 0.99, max) * scale : NAN;
}

void ebpfMonQueryRowsAdd(ebpfMonQueryRows *r, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    Row wanted, *row;

    memset(&wanted, 0, sizeof(wanted));
    memcpy(wanted.key, key, r->keySize);
    row = r->known ? bsearch(&wanted, r->row, r->known, sizeof(*row), compareKeys) : NULL;
    if (!row) {
        if (!cell->count) /* a CPU has just made this cell and not filled it yet */
            return;
        if (ebpfMonArrayGrow(&r->row, &r->room, r->count + 1, 32, sizeof(*row)))
            return;
        row = &r->row[r->count++];
        memset(row, 0, sizeof(*row));
        memcpy(row->key, wanted.key, sizeof(row->key));
        row->seen = ebpfMonClockSeconds();
    }
    setValues(r->spec, &row->row, cell);
    if (!r->spec->order.plan.hist)
        return;
    ebpfMonQueryBarsAdd(&r->spec->order.plan, cell->hist, r->bar);
    if (r->spec->metrics && !row->bar)
        row->bar = malloc(EBPFMON_QUERY_BARS_MAX * sizeof(*row->bar));
    if (row->bar) {
        memset(row->bar, 0, EBPFMON_QUERY_BARS_MAX * sizeof(*row->bar));
        ebpfMonQueryBarsAdd(&r->spec->order.plan, cell->hist, row->bar);
    }
}

const uint64_t *ebpfMonQueryRowsGetBars(const ebpfMonQueryRows *r)
{
    return r->bar;
}

/* Nonzero: all records in the key match. */
static int matchesRecords(const ebpfMonQuerySpec *spec, const ebpfMonQueryRow *row)
{
    for (unsigned i = 0; i < spec->order.plan.keys && spec->record[0]; i++)
        if (ebpfMonQueryIsRecord(&spec->order.plan.key[i]) && !epicsStrGlobMatch(row->key[i], spec->record))
            return 0;
    return 1;
}

static void setTexts(ebpfMonQueryRows *r, const ebpfMonQueryNames *names)
{
    const struct ebpfMonQueryPlan *plan = &r->spec->order.plan;

    for (size_t n = 0; n < r->count; n++) {
        Row *row = &r->row[n];
        int isLater = 0;

        if (row->isNamed)
            continue;
        for (unsigned i = 0; i < plan->keys; i++)
            isLater |= ebpfMonQueryKeyText(&plan->key[i], row->key + plan->key[i].at, names, row->seen, row->row.key[i],
                                           sizeof(row->row.key[i]));
        row->isNamed = !isLater;
        row->isShown = matchesRecords(r->spec, &row->row);
    }
}

static double getSortValue(ebpfMonQuerySort sort, const ebpfMonQueryRow *row)
{
    switch (sort) {
    case ebpfMonQuerySortRate: return row->rate;
    case ebpfMonQuerySortSum:  return row->sum;
    case ebpfMonQuerySortMean: return row->mean;
    case ebpfMonQuerySortMax:  return row->max;
    case ebpfMonQuerySortLast: return row->last;
    default:                   return row->count;
    }
}

static int compareRows(const void *a, const void *b, void *arg)
{
    const ebpfMonQueryRows *r = arg;
    const Row *one = &r->row[*(const unsigned *)a], *other = &r->row[*(const unsigned *)b];
    double x = getSortValue(r->spec->sort, &one->row), y = getSortValue(r->spec->sort, &other->row);

    return x != y ? (x < y) - (x > y) : compareKeys(one, other);
}

void ebpfMonQueryRowsEnd(ebpfMonQueryRows *r, const ebpfMonQueryNames *names, double seconds)
{
    setTexts(r, names);
    for (size_t i = 0; i < r->count; i++) {
        Row *row = &r->row[i];

        row->row.rate = seconds > 0 ? (row->row.count - row->before) / seconds : 0;
        row->before = row->row.count;
    }
    if (r->count > r->known)
        qsort(r->row, r->count, sizeof(*r->row), compareKeys);
    r->shownCount = 0;
    if (ebpfMonArrayGrow(&r->shown, &r->shownRoom, r->count, 32, sizeof(*r->shown)))
        return;
    for (size_t i = 0; i < r->count; i++)
        if (r->row[i].isShown && r->row[i].row.count > 0)
            r->shown[r->shownCount++] = (unsigned)i;
    if (r->shownCount)
        qsort_r(r->shown, r->shownCount, sizeof(*r->shown), compareRows, r);
}

/* Copies the histogram. Of a log2 one, zeros at both ends are left out. */
static void copyHist(const ebpfMonQueryRows *r, ebpfMonQueryResult *result)
{
    const struct ebpfMonQueryPlan *plan = &r->spec->order.plan;
    unsigned first = 0, last = ebpfMonQueryBarsCount(plan);

    while (plan->hist == EBPFMON_QUERY_LOG2 && first < last && !r->bar[first])
        first++;
    while (plan->hist == EBPFMON_QUERY_LOG2 && last > first && !r->bar[last - 1])
        last--;
    result->bars = 0;
    for (unsigned b = first; b < last; b++) {
        result->histEdge[result->bars] = ebpfMonQueryBarEdge(plan, b) * r->spec->scale;
        result->hist[result->bars++] = (double)r->bar[b] * plan->sample;
    }
}

/* Copies the histograms of the rows that go to a collector of metrics. */
static void copyRowBars(const ebpfMonQueryRows *r, ebpfMonQueryResult *result)
{
    const struct ebpfMonQueryPlan *plan = &r->spec->order.plan;
    unsigned bars = r->spec->metrics ? ebpfMonQueryBarsCount(plan) : 0;

    result->rowBars = bars;
    for (unsigned b = 0; b < bars; b++) /* values are whole numbers: the next bar begins with the next one */
        result->barMost[b] = (ebpfMonQueryBarEdge(plan, b + 1) - 1) * r->spec->scale;
    for (unsigned i = 0; i < result->rows && i < r->spec->metrics; i++) {
        const Row *row = &r->row[r->shown[i]];

        for (unsigned b = 0; b < bars; b++)
            result->rowBar[i][b] = row->bar ? (double)row->bar[b] * plan->sample : 0;
    }
}

void ebpfMonQueryRowsCopy(const ebpfMonQueryRows *r, ebpfMonQueryResult *result)
{
    result->found = (unsigned)r->shownCount;
    result->rows = result->found < r->spec->top ? result->found : r->spec->top;
    for (unsigned i = 0; i < result->rows; i++)
        result->row[i] = r->row[r->shown[i]].row;
    copyHist(r, result);
    copyRowBars(r, result);
}
