/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsTime.h>

#include "model/board.h"
#include "model/hist.h"
#include "monitor/rank.h"
#include "monitor/target.h"
#include "probe/loader.h"

/* A record's name; with its IOC where another watched IOC has one of the same name. */
static void displayName(const ebpfMonTarget *t, uint32_t index, char *buf, size_t size)
{
    const char *name = ebpfMonCatalogueName(t->cat, index);

    for (ebpfMonTarget *o = ebpfMonTargetsFirst(); o; o = o->next)
        if (o != t && !o->gone && o->cat && o->slot != UINT32_MAX && ebpfMonCatalogueFind(o->cat, name) >= 0) {
            snprintf(buf, size, "%.40s@%.18s", name, t->name);
            return;
        }
    snprintf(buf, size, "%s", name);
}

/* --- records ---------------------------------------------------------------------------------------- */

typedef struct {
    const ebpfMonTarget *t;
    uint32_t index;
    float rate;
    uint64_t count;
} busy;

/* A list of the largest, kept in order by insertion: most records do not get past its end. */
static unsigned insertBusy(busy *top, unsigned n, busy b)
{
    unsigned i;

    if (n == EBPFMON_TOP_MAX &&
        (b.rate < top[n - 1].rate || (b.rate == top[n - 1].rate && b.count <= top[n - 1].count)))
        return n;
    i = n < EBPFMON_TOP_MAX ? n++ : n - 1;
    for (; i > 0 && (top[i - 1].rate < b.rate || (top[i - 1].rate == b.rate && top[i - 1].count < b.count)); i--)
        top[i] = top[i - 1];
    top[i] = b;
    return n;
}

static void watchRecords(ebpfMonBoard *board)
{
    for (unsigned i = 0; i < board->watchCount; i++) {
        ebpfMonWatchRow *w = &board->watch[i];

        w->found = 0;
        for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t && !w->found; t = t->next) {
            long r = t->cat && t->slot != UINT32_MAX && !t->gone ? ebpfMonCatalogueFind(t->cat, w->record) : -1;

            if (r < 0)
                continue;
            w->found = 1;
            snprintf(w->real, sizeof(w->real), "%s", ebpfMonCatalogueName(t->cat, (uint32_t)r));
            w->procCount = ebpfMonTargetCount(t, (uint32_t)r);
            w->procRate = (double)t->rate[r];
            w->atLeast = !!(t->how[r] & EBPFMON_AT_LEAST);
        }
    }
}

void ebpfMonRankRecords(double seconds)
{
    static busy top[EBPFMON_TOP_MAX];
    unsigned n = 0;
    static uint64_t done; /* counted on over IOCs that come and go */
    double rate = 0;
    ebpfMonBoard *board;
    epicsTimeStamp at;
    uint64_t *now = NULL;

    epicsTimeGetCurrent(&at);
    ebpfMonTargetsLock();
    for (ebpfMonTarget *t = ebpfMonTargetsFirst(); t; t = t->next) {
        if (t->slot == UINT32_MAX || !t->cat)
            continue;
        now = realloc(now, ((size_t)t->cat->count + 1) * sizeof(*now));
        if (!now)
            break;
        ebpfMonTargetCounts(t, now);
        for (uint32_t i = 0; i < t->cat->count; i++) {
            uint64_t count = now[i], delta = count >= t->counts[i] ? count - t->counts[i] : 0;

            t->counts[i] = count;
            t->rate[i] += 0.5f * ((float)((double)delta / seconds) - t->rate[i]);
            if (delta == 0 && t->rate[i] < 1e-3f)
                t->rate[i] = 0;
            if (!(t->how[i] & EBPFMON_SHOWN))
                continue;
            done += delta;
            t->procCount += delta;
            rate += (double)delta / seconds;
            if (count && !t->gone && t->level >= ebpfMonLevelCounts)
                n = insertBusy(top, n, (busy){ t, i, t->rate[i], count });
        }
    }
    board = ebpfMonBoardLock();
    board->procCount = done;
    board->procRate += 0.5 * (rate - board->procRate);
    if (rate == 0 && board->procRate < 1e-3)
        board->procRate = 0;
    board->procTop = n;
    for (unsigned i = 0; i < n; i++) {
        ebpfMonProcRow *row = &board->proc[i];

        displayName(top[i].t, top[i].index, row->name, sizeof(row->name));
        row->count = top[i].count;
        row->rate = (double)top[i].rate;
        row->atLeast = !!(top[i].t->how[top[i].index] & EBPFMON_AT_LEAST);
    }
    watchRecords(board);
    board->time[ebpfMonGroupProc] = at;
    board->time[ebpfMonGroupWatch] = at;
    ebpfMonBoardUnlock();
    ebpfMonTargetsUnlock();
    free(now);
}

/* --- chains ----------------------------------------------------------------------------------------- */

typedef struct {
    const ebpfMonTarget *t;
    uint32_t index;
    double mean;
    struct ebpfMonRootStat stat;
} slowRoot;

static struct {
    slowRoot top[EBPFMON_TOP_MAX];
    unsigned n;
    uint32_t hist[EBPFMON_BUCKETS];
    char sel[EBPFMON_NAME_SIZE];
    int found;
    /* watched records: their names, and what was found; a copy, because reading the kernel's table takes
     * longer than the board may be held */
    unsigned watches;
    struct {
        char record[EBPFMON_NAME_SIZE];
        uint64_t chains;
        double mean, p99, max;
    } watch[EBPFMON_WATCH_MAX];
} ranking;

static void addHist(const struct ebpfMonRootStat *s)
{
    for (unsigned b = 0; b < EBPFMON_BUCKETS; b++)
        ranking.hist[b] += s->hist[b];
    ranking.found = 1;
}

static void eachRoot(void *arg, uint32_t slot, const struct ebpfMonRootStat *s)
{
    ebpfMonTarget *t;
    uint32_t index = 0;
    slowRoot r;
    unsigned i;
    const char *name;

    (void)arg;
    for (t = ebpfMonTargetsFirst(); t; t = t->next)
        if (t->slot != UINT32_MAX && t->cat && slot - t->slot < t->cat->count) {
            index = slot - t->slot;
            break;
        }
    if (!t || t->gone)
        return;
    name = ebpfMonCatalogueName(t->cat, index);
    for (i = 0; s->count && i < ranking.watches; i++)
        if (strcmp(ranking.watch[i].record, name) == 0) {
            ranking.watch[i].chains = s->count;
            ranking.watch[i].mean = (double)s->sum / (double)s->count / 1000;
            ranking.watch[i].p99 = ebpfMonHistQuantile(s->hist, EBPFMON_BUCKETS, 0.99, (double)s->max) / 1000;
            ranking.watch[i].max = (double)s->max / 1000;
        }
    if (ranking.sel[0] ? strcmp(name, ranking.sel) == 0 : !!(t->how[index] & EBPFMON_SHOWN))
        addHist(s);
    if (!s->count || !(t->how[index] & EBPFMON_SHOWN))
        return;
    r = (slowRoot){ t, index, (double)s->sum / (double)s->count, *s };
    if (ranking.n == EBPFMON_TOP_MAX && r.mean <= ranking.top[ranking.n - 1].mean)
        return;
    i = ranking.n < EBPFMON_TOP_MAX ? ranking.n++ : ranking.n - 1;
    for (; i > 0 && ranking.top[i - 1].mean < r.mean; i--)
        ranking.top[i] = ranking.top[i - 1];
    ranking.top[i] = r;
}

void ebpfMonRankChains(void)
{
    ebpfMonBoard *board;
    epicsTimeStamp begun;

    epicsTimeGetCurrent(&begun); /* what ended before is in it */
    ranking.n = 0;
    ranking.found = 0;
    memset(ranking.hist, 0, sizeof(ranking.hist));
    board = ebpfMonBoardLock();
    memcpy(ranking.sel, board->histSel, sizeof(ranking.sel));
    ranking.watches = board->watchCount;
    for (unsigned i = 0; i < ranking.watches; i++) {
        memcpy(ranking.watch[i].record, board->watch[i].real, EBPFMON_NAME_SIZE);
        ranking.watch[i].chains = 0;
        ranking.watch[i].mean = ranking.watch[i].p99 = ranking.watch[i].max = NAN;
    }
    ebpfMonBoardUnlock();
    ebpfMonTargetsLock();
    ebpfMonRootsEach(eachRoot, NULL);
    board = ebpfMonBoardLock();
    for (unsigned i = 0; i < ranking.watches; i++) {
        board->watch[i].chains = ranking.watch[i].chains;
        board->watch[i].latMean = ranking.watch[i].mean;
        board->watch[i].latP99 = ranking.watch[i].p99;
        board->watch[i].latMax = ranking.watch[i].max;
    }
    board->chainTop = ranking.n;
    for (unsigned i = 0; i < ranking.n; i++) {
        const slowRoot *r = &ranking.top[i];
        ebpfMonChainRow *row = &board->chain[i];

        displayName(r->t, r->index, row->name, sizeof(row->name));
        snprintf(row->root, sizeof(row->root), "%s", ebpfMonCatalogueName(r->t->cat, r->index));
        snprintf(row->ioc, sizeof(row->ioc), "%s", r->t->name);
        ebpfMonHistOctaves(r->stat.hist, EBPFMON_BUCKETS, row->hist, EBPFMON_HIST_MAX);
        row->count = r->stat.count;
        row->last = (double)r->stat.last / 1000;
        row->mean = r->mean / 1000;
        row->p50 = ebpfMonHistQuantile(r->stat.hist, EBPFMON_BUCKETS, 0.5, (double)r->stat.max) / 1000;
        row->p99 = ebpfMonHistQuantile(r->stat.hist, EBPFMON_BUCKETS, 0.99, (double)r->stat.max) / 1000;
        row->max = (double)r->stat.max / 1000;
        row->waitMean = (double)r->stat.waitSum / (double)r->stat.count / 1000;
        row->waitMax = (double)r->stat.waitMax / 1000;
    }
    ebpfMonHistOctaves(ranking.hist, EBPFMON_BUCKETS, board->hist, EBPFMON_HIST_MAX);
    for (unsigned o = 0; o < EBPFMON_HIST_MAX; o++)
        board->histEdge[o] = ebpfMonHistOctaveEdge(o) / 1000;
    board->histFound = ranking.found;
    board->time[ebpfMonGroupChains] = begun;
    ebpfMonBoardUnlock();
    ebpfMonTargetsUnlock();
}
