/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsTime.h>

#include "model/published.h"
#include "model/hist.h"
#include "publish/rankings.h"
#include "watch/target.h"
#include "probe/loader.h"

/* A record's name; with its IOC where another watched IOC has one of the same name. */
static void displayName(const ebpfMonTarget *t, uint32_t index, char *buf, size_t size)
{
    const char *name = ebpfMonCatalogueName(t->cat, index);

    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(ebpfMonTheTargets); o; o = o->next)
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

static void watchRecords(ebpfMonPublished *published)
{
    for (unsigned i = 0; i < published->watchCount; i++) {
        ebpfMonWatchRow *w = &published->watch[i];

        w->found = 0;
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t && !w->found; t = t->next) {
            long r = t->cat && t->slot != UINT32_MAX && !t->gone ? ebpfMonCatalogueFind(t->cat, w->record) : -1;

            if (r < 0)
                continue;
            w->found = 1;
            snprintf(w->real, sizeof(w->real), "%s", ebpfMonCatalogueName(t->cat, (uint32_t)r));
            w->procCount = ebpfMonTargetCountRecord(t, (uint32_t)r);
            w->procRate = (double)t->publisher.rate[r];
            w->atLeast = !!(t->how[r] & EBPFMON_AT_LEAST);
        }
    }
}

void ebpfMonRankingsUpdateRecords(double seconds)
{
    static busy top[EBPFMON_TOP_MAX];
    unsigned n = 0;
    static uint64_t done; /* counted on over IOCs that come and go */
    double rate = 0;
    ebpfMonPublished *published;
    epicsTimeStamp at;
    uint64_t *now = NULL;

    epicsTimeGetCurrent(&at);
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next) {
        if (t->slot == UINT32_MAX || !t->cat)
            continue;
        now = realloc(now, ((size_t)t->cat->count + 1) * sizeof(*now));
        if (!now)
            break;
        ebpfMonTargetCountRecords(t, now);
        for (uint32_t i = 0; i < t->cat->count; i++) {
            uint64_t count = now[i], delta = count >= t->publisher.counts[i] ? count - t->publisher.counts[i] : 0;

            t->publisher.counts[i] = count;
            t->publisher.rate[i] += 0.5f * ((float)((double)delta / seconds) - t->publisher.rate[i]);
            if (delta == 0 && t->publisher.rate[i] < 1e-3f)
                t->publisher.rate[i] = 0;
            if (!(t->how[i] & EBPFMON_SHOWN))
                continue;
            done += delta;
            t->publisher.procCount += delta;
            rate += (double)delta / seconds;
            if (count && !t->gone && t->level >= ebpfMonLevelCounts)
                n = insertBusy(top, n, (busy){ t, i, t->publisher.rate[i], count });
        }
    }
    published = ebpfMonPublishedLock();
    published->procCount = done;
    published->procRate += 0.5 * (rate - published->procRate);
    if (rate == 0 && published->procRate < 1e-3)
        published->procRate = 0;
    published->procTop = n;
    for (unsigned i = 0; i < n; i++) {
        ebpfMonProcRow *row = &published->proc[i];

        displayName(top[i].t, top[i].index, row->name, sizeof(row->name));
        row->count = top[i].count;
        row->rate = (double)top[i].rate;
        row->atLeast = !!(top[i].t->how[top[i].index] & EBPFMON_AT_LEAST);
    }
    watchRecords(published);
    published->time[ebpfMonGroupProc] = at;
    published->time[ebpfMonGroupWatch] = at;
    ebpfMonPublishedUnlock();
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
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
     * longer than the published may be held */
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
    for (t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next)
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

void ebpfMonRankingsUpdateChains(void)
{
    ebpfMonPublished *published;
    epicsTimeStamp begun;

    epicsTimeGetCurrent(&begun); /* what ended before is in it */
    ranking.n = 0;
    ranking.found = 0;
    memset(ranking.hist, 0, sizeof(ranking.hist));
    published = ebpfMonPublishedLock();
    memcpy(ranking.sel, published->histSel, sizeof(ranking.sel));
    ranking.watches = published->watchCount;
    for (unsigned i = 0; i < ranking.watches; i++) {
        memcpy(ranking.watch[i].record, published->watch[i].real, EBPFMON_NAME_SIZE);
        ranking.watch[i].chains = 0;
        ranking.watch[i].mean = ranking.watch[i].p99 = ranking.watch[i].max = NAN;
    }
    ebpfMonPublishedUnlock();
    ebpfMonTargetsLock(ebpfMonTheTargets);
    ebpfMonKernelEachRoot(eachRoot, NULL);
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < ranking.watches; i++) {
        published->watch[i].chains = ranking.watch[i].chains;
        published->watch[i].latMean = ranking.watch[i].mean;
        published->watch[i].latP99 = ranking.watch[i].p99;
        published->watch[i].latMax = ranking.watch[i].max;
    }
    published->chainTop = ranking.n;
    for (unsigned i = 0; i < ranking.n; i++) {
        const slowRoot *r = &ranking.top[i];
        ebpfMonChainRow *row = &published->chain[i];

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
    ebpfMonHistOctaves(ranking.hist, EBPFMON_BUCKETS, published->hist, EBPFMON_HIST_MAX);
    for (unsigned o = 0; o < EBPFMON_HIST_MAX; o++)
        published->histEdge[o] = ebpfMonHistOctaveEdge(o) / 1000;
    published->histFound = ranking.found;
    published->time[ebpfMonGroupChains] = begun;
    ebpfMonPublishedUnlock();
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}
