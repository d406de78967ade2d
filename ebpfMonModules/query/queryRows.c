/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsString.h>
#include <epicsTime.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "query/queryCells.h"
#include "query/queryRows.h"

/* 0: the query has no histogram. */
static inline unsigned ebpfMonQueryBarsCount(const struct ebpfMonQueryPlan *plan)
{
    return plan->hist == EBPFMON_QUERY_LOG2 ? EBPFMON_QUERY_BUCKETS / EBPFMON_QUERY_IN_BAR
         : plan->hist == EBPFMON_QUERY_LINEAR ? plan->steps + 2 : 0;
}

/* Adds the buckets of a cell to bar[EBPFMON_QUERY_BARS_MAX]. */
static inline void ebpfMonQueryBarsAdd(const struct ebpfMonQueryPlan *plan, const __u64 *bucket, uint64_t *bar)
{
    unsigned in = plan->hist == EBPFMON_QUERY_LOG2 ? EBPFMON_QUERY_IN_BAR : 1, bars = ebpfMonQueryBarsCount(plan);

    for (unsigned b = 0; b < bars * in; b++)
        bar[b / in] += bucket[b];
}

/* --- heat maps --- */

#define ROWS    EBPFMON_QUERY_HEAT_ROWS
#define COLUMNS EBPFMON_QUERY_HEAT_COLUMNS
#define BARS    EBPFMON_QUERY_BARS_MAX

struct ebpfMonQueryHeat {
    const ebpfMonQuerySpec *spec;
    unsigned bars;
    double   begin;        /* of the column that is being made (monotonic s) */
    uint64_t before[BARS]; /* the histogram at that time */
    double   cell[BARS][COLUMNS]; /* NaN: not known. The newest column is the last one */
};

static void clearCells(double *cell, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cell[i] = NAN;
}

ebpfMonQueryHeat *ebpfMonQueryHeatNew(const ebpfMonQuerySpec *spec, double now)
{
    ebpfMonQueryHeat *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->spec = spec;
    h->bars = ebpfMonQueryBarsCount(&spec->order.plan);
    h->begin = now;
    clearCells(h->cell[0], (size_t)BARS * COLUMNS);
    return h;
}

void ebpfMonQueryHeatFree(ebpfMonQueryHeat *h)
{
    free(h);
}

/* Shifts all columns by "columns" and sets the newest one. If the thread was late, so that several columns are over, it
 * is not known in which of them the values came: all stand in the newest one. */
static void appendColumn(ebpfMonQueryHeat *h, const uint64_t *bar, unsigned columns)
{
    for (unsigned b = 0; b < h->bars; b++) {
        double *row = h->cell[b];

        memmove(row, row + columns, (COLUMNS - columns) * sizeof(*row));
        clearCells(row + COLUMNS - columns, columns);
        if (bar[b] >= h->before[b])
            row[COLUMNS - 1] = (double)(bar[b] - h->before[b]) * h->spec->order.plan.sample;
    }
}

void ebpfMonQueryHeatAdd(ebpfMonQueryHeat *h, const uint64_t *bar, double now)
{
    /* The looks of a query are not exact to the ms: a look that is early by half an interval ends the column, too */
    double columns = floor((now - h->begin + h->spec->interval / 2) / h->spec->history);

    if (columns < 1)
        return;
    appendColumn(h, bar, columns < COLUMNS ? (unsigned)columns : COLUMNS);
    memcpy(h->before, bar, sizeof(h->before));
    h->begin += columns * h->spec->history;
}

/* The first of the bars that are shown. A log2 histogram has more bars than rows: those from the least one that is in
 * the history; if the history has more than that, its greatest ones. */
static unsigned findFirst(const ebpfMonQueryHeat *h)
{
    unsigned least = h->bars, most = 0, first;

    for (unsigned b = 0; b < h->bars; b++)
        for (unsigned c = 0; c < COLUMNS; c++)
            if (h->cell[b][c] > 0) {
                least = b < least ? b : least;
                most = b;
            }
    if (least == h->bars || h->bars <= ROWS)
        return 0;
    first = most >= least + ROWS ? most - ROWS + 1 : least;
    return first + ROWS > h->bars ? h->bars - ROWS : first;
}

void ebpfMonQueryHeatCopy(const ebpfMonQueryHeat *h, ebpfMonQueryResult *result)
{
    const struct ebpfMonQueryPlan *plan = &h->spec->order.plan;
    unsigned together = plan->hist == EBPFMON_QUERY_LINEAR ? (h->bars + ROWS - 1) / ROWS : 1; /* bars in a row */
    unsigned first = plan->hist == EBPFMON_QUERY_LINEAR ? 0 : findFirst(h);

    result->heatSeconds = h->spec->history;
    for (unsigned r = 0; r < ROWS; r++) {
        double *row = &result->heat[(ROWS - 1 - r) * COLUMNS]; /* the greatest values at the top */
        unsigned from = first + r * together;

        result->heatEdge[ROWS - 1 - r] = ebpfMonQueryBarEdge(plan, from) * h->spec->scale;
        for (unsigned c = 0; c < COLUMNS; c++) {
            row[c] = from < h->bars ? h->cell[from][c] : NAN;
            for (unsigned b = from + 1; b < from + together && b < h->bars; b++)
                row[c] += h->cell[b][c];
        }
    }
}

/* --- events --- */

struct ebpfMonQueryEvents {
    const ebpfMonQuerySpec *spec;
    const ebpfMonQueryNames *names;
    uint64_t count;
    ebpfMonQueryEventRow row[EBPFMON_QUERY_EVENTS_MAX]; /* number n is at n % EBPFMON_QUERY_EVENTS_MAX */
};

ebpfMonQueryEvents *ebpfMonQueryEventsNew(const ebpfMonQuerySpec *spec, const ebpfMonQueryNames *names)
{
    ebpfMonQueryEvents *e = calloc(1, sizeof(*e));

    if (e) {
        e->spec = spec;
        e->names = names;
    }
    return e;
}

void ebpfMonQueryEventsFree(ebpfMonQueryEvents *e)
{
    free(e);
}

void ebpfMonQueryEventsAdd(ebpfMonQueryEvents *e, const struct ebpfMonQueryEvent *ev)
{
    const struct ebpfMonQueryPlan *plan = &e->spec->order.plan;
    ebpfMonQueryEventRow *row = &e->row[e->count++ % EBPFMON_QUERY_EVENTS_MAX];
    epicsTimeStamp time = ebpfMonClockWallTime(ev->at);

    epicsTimeToStrftime(row->time, sizeof(row->time), "%Y-%m-%d %H:%M:%S.%09f", &time);
    ebpfMonTextCopyBytes(row->thread, sizeof(row->thread), ev->comm, sizeof(ev->comm));
    row->cpu = ev->cpu;
    row->value = (double)ev->value * e->spec->scale;
    for (unsigned i = 0; i < plan->keys; i++)
        ebpfMonQueryKeyText(&plan->key[i], (const uint8_t *)ev->key + plan->key[i].at, e->names,
                            ebpfMonClockSeconds(), row->key[i], sizeof(row->key[i]));
}

void ebpfMonQueryEventsCopy(const ebpfMonQueryEvents *e, ebpfMonQueryResult *result)
{
    result->eventRows = e->count < EBPFMON_QUERY_EVENTS_MAX ? (unsigned)e->count : EBPFMON_QUERY_EVENTS_MAX;
    for (unsigned i = 0; i < result->eventRows; i++)
        result->event[i] = e->row[(e->count - 1 - i) % EBPFMON_QUERY_EVENTS_MAX];
}

/* --- rows --- */

typedef struct {
    uint8_t key[EBPFMON_QUERY_KEY_SIZE];
    ebpfMonQueryRow row;
    double before;  /* row.count at the last look */
    double newSum;  /* what came to row.sum since the look before; NaN: not known */
    uint64_t cellCount, cellSum; /* of its cell at the last look */
    __int128 sum;   /* of all values: the sum of the cell is only 64 bits of it */
    int    isSumLost; /* the sum is not known any more */
    double newMax;  /* the greatest value since the look before */
    int    isShown; /* its records match spec->record */
    int    isNamed; /* its texts are complete */
    double seen;    /* monotonic s: when it was first seen */
    uint64_t *bucket; /* its histogram, EBPFMON_QUERY_BUCKETS; NULL: the query has none, or no memory */
} Row;

struct ebpfMonQueryRows {
    const ebpfMonQuerySpec *spec;
    unsigned keySize;
    Row     *row;
    size_t   known;         /* rows of earlier looks, sorted by key */
    size_t   count, room;   /* all rows: known ones first, then the new ones of this look, unsorted */
    uint64_t bar[EBPFMON_QUERY_BARS_MAX]; /* the histogram over all rows that match */
    double   rate, sumRate, mean, max;    /* of these rows, since the look before; as ebpfMonQueryResult.now */
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
        free(r->row[i].bucket);
    free(r->row);
    free(r->shown);
    free(r);
}

void ebpfMonQueryRowsBegin(ebpfMonQueryRows *r)
{
    r->known = r->count;
}

static int compareKeys(const void *a, const void *b)
{
    return memcmp(((const Row *)a)->key, ((const Row *)b)->key, EBPFMON_QUERY_KEY_SIZE);
}

/* Returns a percentile: the upper edge of its bucket, or the greatest value if that is smaller. The last bucket has no
 * upper edge. */
static double findPercentile(const struct ebpfMonQueryCell *cell, double part, double max)
{
    uint64_t sum = 0, want;

    want = (uint64_t)ceil(part * (double)cell->count);
    for (unsigned b = 0; b + 1 < EBPFMON_QUERY_BUCKETS; b++) {
        sum += cell->hist[b];
        if (sum >= want && sum)
            return b < 7 ? b : fmin(max, ebpfMonQueryBucketEdge(b + 1));
    }
    return max;
}

/* Adds what came to the cell since the last look: that must be less than 2^63, but in all it may be more. Returns the
 * sum of all values, not scaled; NaN: it is not known. */
static double addToSum(const ebpfMonQuerySpec *spec, Row *row, const struct ebpfMonQueryCell *c)
{
    int64_t more = (int64_t)(c->sum - row->cellSum), events = (int64_t)(c->count - row->cellCount);
    int mayWrap = ebpfMonQueryCellMayWrap(c, events < 0 ? 0 : (uint64_t)events);

    row->cellSum = c->sum;
    row->cellCount = c->count;
    row->sum += more;
    row->isSumLost |= mayWrap;
    row->newSum = mayWrap ? NAN : (double)more * spec->scale * spec->order.plan.sample;
    return row->isSumLost ? NAN : (double)row->sum;
}

static void setValues(const ebpfMonQuerySpec *spec, ebpfMonQueryRow *row, const struct ebpfMonQueryCell *c, double sum)
{
    double scale = spec->scale, max = (double)(int64_t)(c->high ^ 1ull << 63);
    int isLog2 = spec->order.plan.hist == EBPFMON_QUERY_LOG2;

    row->count = (double)c->count * spec->order.plan.sample;
    row->sum = sum * scale * spec->order.plan.sample;
    row->mean = c->count ? sum * scale / (double)c->count : 0;
    row->max = c->count ? max * scale : 0;
    row->min = c->count ? (double)(int64_t)(~c->low ^ 1ull << 63) * scale : 0;
    row->last = (double)c->last * scale;
    row->p50 = isLog2 ? findPercentile(c, 0.5, max) * scale : NAN;
    row->p90 = isLog2 ? findPercentile(c, 0.9, max) * scale : NAN;
    row->p99 = isLog2 ? findPercentile(c, 0.99, max) * scale : NAN;
}

/* Returns the upper edge of the highest bucket in which values came since the last look; infinite: the last bucket has
 * none. */
static double findNewMax(const ebpfMonQuerySpec *spec, const uint64_t *before, const struct ebpfMonQueryCell *cell)
{
    const struct ebpfMonQueryPlan *plan = &spec->order.plan;
    unsigned b = EBPFMON_QUERY_BUCKETS;

    while (b && cell->hist[b - 1] <= before[b - 1])
        b--;
    if (!b)
        return 0;
    if (b == EBPFMON_QUERY_BUCKETS || (plan->hist == EBPFMON_QUERY_LINEAR && b > plan->steps + 1))
        return INFINITY;
    return spec->scale * (plan->hist == EBPFMON_QUERY_LINEAR ? ebpfMonQueryBarEdge(plan, b)
                          : b <= 7 ? b - 1 : ebpfMonQueryBucketEdge(b));
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
    setValues(r->spec, &row->row, cell, addToSum(r->spec, row, cell));
    row->newMax = row->row.count > row->before ? row->row.max : 0;
    if (!r->spec->order.plan.hist)
        return;
    if (!row->bucket)
        row->bucket = calloc(EBPFMON_QUERY_BUCKETS, sizeof(*row->bucket));
    if (row->bucket) {
        row->newMax = fmin(row->newMax, findNewMax(r->spec, row->bucket, cell));
        memcpy(row->bucket, cell->hist, EBPFMON_QUERY_BUCKETS * sizeof(*row->bucket));
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
    case ebpfMonQuerySortSum:  return isnan(row->sum) ? INFINITY : row->sum;
    case ebpfMonQuerySortMean: return isnan(row->mean) ? INFINITY : row->mean;
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

/* Adds the rows that match, since the last look and in the histogram. */
static void addTotals(ebpfMonQueryRows *r, double seconds)
{
    double count = 0, sum = 0;

    memset(r->bar, 0, sizeof(r->bar));
    r->max = 0;
    for (size_t i = 0; i < r->shownCount; i++) {
        const Row *row = &r->row[r->shown[i]];

        count += row->row.count - row->before;
        sum += row->newSum;
        r->max = row->newMax > r->max ? row->newMax : r->max;
        if (row->bucket)
            ebpfMonQueryBarsAdd(&r->spec->order.plan, (const __u64 *)row->bucket, r->bar);
    }
    r->rate = seconds > 0 ? count / seconds : 0;
    r->sumRate = seconds > 0 ? sum / seconds : 0;
    r->mean = count > 0 ? sum / count : 0;
    for (size_t i = 0; i < r->count; i++) {
        r->row[i].before = r->row[i].row.count;
        r->row[i].newSum = 0;
        r->row[i].newMax = 0;
    }
}

void ebpfMonQueryRowsEnd(ebpfMonQueryRows *r, const ebpfMonQueryNames *names, double seconds)
{
    setTexts(r, names);
    for (size_t i = 0; i < r->count; i++) {
        Row *row = &r->row[i];

        row->row.rate = seconds > 0 ? (row->row.count - row->before) / seconds : 0;
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
    addTotals(r, seconds);
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

/* Copies the histograms of the first rows. */
static void copyRowBars(const ebpfMonQueryRows *r, ebpfMonQueryResult *result)
{
    const struct ebpfMonQueryPlan *plan = &r->spec->order.plan;
    unsigned bars = ebpfMonQueryBarsCount(plan);

    result->rowBars = bars;
    for (unsigned b = 0; b < bars; b++) { /* values are whole numbers: the next bar begins with the next one */
        result->barEdge[b] = ebpfMonQueryBarEdge(plan, b) * r->spec->scale;
        result->barMost[b] = (ebpfMonQueryBarEdge(plan, b + 1) - 1) * r->spec->scale;
    }
    for (unsigned i = 0; bars && i < result->rows && i < EBPFMON_QUERY_METRICS_MAX; i++) {
        const Row *row = &r->row[r->shown[i]];
        uint64_t bar[EBPFMON_QUERY_BARS_MAX] = { 0 };

        if (row->bucket)
            ebpfMonQueryBarsAdd(plan, (const __u64 *)row->bucket, bar);
        for (unsigned b = 0; b < bars; b++)
            result->rowBar[i][b] = (double)bar[b] * plan->sample;
    }
}

void ebpfMonQueryRowsCopy(const ebpfMonQueryRows *r, ebpfMonQueryResult *result)
{
    result->found = (unsigned)r->shownCount;
    result->rows = result->found < r->spec->top ? result->found : r->spec->top;
    for (unsigned i = 0; i < result->rows; i++)
        result->row[i] = r->row[r->shown[i]].row;
    result->rest = 0;
    for (unsigned i = result->rows; i < result->found; i++)
        result->rest += r->row[r->shown[i]].row.count;
    result->now.rate = r->rate;
    result->now.sumRate = r->sumRate;
    result->now.mean = r->mean;
    result->now.max = r->max;
    copyHist(r, result);
    copyRowBars(r, result);
}
