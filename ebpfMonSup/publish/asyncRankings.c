/* SPDX-License-Identifier: BSD-3-Clause */
/* The rankings are made in this context under the targets lock, and then copied into the published values (see
 * rankings.c). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsTime.h>

#include "model/published.h"
#include "publish/asyncRankings.h"
#include "publish/displayName.h"
#include "probe/hist.h"

#define MS(ns) ((double)(ns) / 1e6)

typedef struct {
    const ebpfMonTarget *t;
    uint32_t index;
    double   order; /* ms; the largest goes first */
    ebpfMonAsyncRow row;
} slowRecord;

typedef struct {
    char     real[EBPFMON_NAME_SIZE];
    uint64_t count;
    double   mean, p99, max;
} watchedRecord;

struct ebpfMonAsyncRankings {
    ebpfMonTargets    *targets;
    ebpfMonAsyncSource eachAsync;
    uint64_t      now;
    slowRecord    slow[EBPFMON_TOP_MAX];
    unsigned      slowCount;
    watchedRecord watched[EBPFMON_WATCH_MAX];
    unsigned      watchedCount;
    uint64_t      hist[EBPFMON_BUCKETS]; /* the sum of all records that are shown */
    char          selected[EBPFMON_NAME_SIZE];
    int           isFound;
    double        latencyMax, busyMax;
};

ebpfMonAsyncRankings *ebpfMonAsyncRankingsNew(ebpfMonTargets *targets, ebpfMonAsyncSource eachAsync)
{
    ebpfMonAsyncRankings *r = calloc(1, sizeof(*r));

    if (r) {
        r->targets = targets;
        r->eachAsync = eachAsync;
    }
    return r;
}

void ebpfMonAsyncRankingsFree(ebpfMonAsyncRankings *r)
{
    free(r);
}

static void beginSecond(ebpfMonAsyncRankings *r, uint64_t now)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    memcpy(r->selected, published->chains.selectedRoot, sizeof(r->selected));
    r->watchedCount = published->watched.count;
    for (unsigned i = 0; i < r->watchedCount; i++) {
        watchedRecord *w = &r->watched[i];

        memcpy(w->real, published->watched.row[i].real, sizeof(w->real));
        w->count = 0;
        w->mean = w->p99 = w->max = NAN;
    }
    ebpfMonPublishedUnlock();
    r->now = now;
    r->slowCount = 0;
    r->isFound = 0;
    r->latencyMax = r->busyMax = 0;
    memset(r->hist, 0, sizeof(r->hist));
}

/* The longest time (ms) from begin to completion in this window and the one before. 0: there is none in either. */
static double findRecentMax(const struct ebpfMonRecent *recent, uint64_t now)
{
    uint64_t window = now >> EBPFMON_WINDOW_BITS, max = 0;

    if (recent->window == window)
        max = recent->max > recent->maxBefore ? recent->max : recent->maxBefore;
    else if (recent->window + 1 == window)
        max = recent->max;
    return MS(max);
}

/* Nonzero: the record is asynchronous now. If it began before our probes were set, we do not know: it may have
 * completed unseen. */
static int isUnderWay(const ebpfMonTarget *t, const struct ebpfMonAsyncStat *s, uint64_t now)
{
    return t->level >= ebpfMonLevelChains && s->since && s->since >= t->queuesSince && s->since < now;
}

static void fillRow(const ebpfMonTarget *t, const struct ebpfMonAsyncStat *s, uint64_t now, ebpfMonAsyncRow *row)
{
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };

    memset(row, 0, sizeof(*row));
    row->count = s->count;
    row->timeouts = s->timeouts;
    row->busy = isUnderWay(t, s, now) ? MS(now - s->since) : 0;
    if (!s->count)
        return;
    row->mean = MS(s->sum) / (double)s->count;
    ebpfMonHistAdd(hist, s->hist, EBPFMON_BUCKETS);
    row->p99 = ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.99, (double)s->max) / 1e6;
    row->max = MS(s->max);
}

/* Keeps the slowest: by the mean time, or by the time since the record began, if that is longer. */
static void insertRow(ebpfMonAsyncRankings *r, const ebpfMonTarget *t, uint32_t index, const ebpfMonAsyncRow *row)
{
    double order = row->mean > row->busy ? row->mean : row->busy;
    unsigned i = r->slowCount;

    if (i == EBPFMON_TOP_MAX && order <= r->slow[i - 1].order)
        return;
    i = i < EBPFMON_TOP_MAX ? r->slowCount++ : i - 1;
    for (; i > 0 && r->slow[i - 1].order < order; i--)
        r->slow[i] = r->slow[i - 1];
    r->slow[i] = (slowRecord){ t, index, order, *row };
}

static void noteWatched(ebpfMonAsyncRankings *r, const char *name, const ebpfMonAsyncRow *row)
{
    for (unsigned i = 0; row->count && i < r->watchedCount; i++) {
        watchedRecord *w = &r->watched[i];

        if (strcmp(w->real, name) != 0)
            continue;
        w->count = row->count;
        w->mean = row->mean;
        w->p99 = row->p99;
        w->max = row->max;
    }
}

static void addAsync(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *s)
{
    ebpfMonAsyncRankings *r = arg;
    uint32_t index = 0;
    const ebpfMonTarget *t = ebpfMonDisplayFindSlot(r->targets, slot, &index);
    ebpfMonAsyncRow row;
    const char *name;
    double recent;
    int isShown;

    if (!t || t->gone)
        return;
    name = ebpfMonCatalogueName(t->cat, index);
    isShown = !!(t->how[index] & EBPFMON_SHOWN);
    fillRow(t, s, r->now, &row);
    noteWatched(r, name, &row);
    if (r->selected[0] ? strcmp(name, r->selected) == 0 : isShown) {
        ebpfMonHistAdd(r->hist, s->hist, EBPFMON_BUCKETS);
        r->isFound |= s->count != 0;
    }
    if (!isShown)
        return;
    recent = findRecentMax(&s->recent, r->now);
    if (recent > r->latencyMax)
        r->latencyMax = recent;
    if (row.busy > r->busyMax)
        r->busyMax = row.busy;
    if (row.count || row.busy > 0)
        insertRow(r, t, index, &row);
}

static void publishRows(const ebpfMonAsyncRankings *r, const epicsTimeStamp *at)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonAsyncValues *values = &published->asyncs;

    for (unsigned i = 0; i < r->watchedCount; i++) {
        ebpfMonWatchRow *row = &published->watched.row[i];

        row->asyncCount = r->watched[i].count;
        row->asyncMean = r->watched[i].mean;
        row->asyncP99 = r->watched[i].p99;
        row->asyncMax = r->watched[i].max;
    }
    values->slowestCount = r->slowCount;
    for (unsigned i = 0; i < r->slowCount; i++)
        values->slowest[i] = r->slow[i].row;
    ebpfMonHistOctaves(r->hist, EBPFMON_BUCKETS, values->hist, EBPFMON_HIST_MAX);
    values->selectedFound = r->isFound;
    values->latencyMax = r->latencyMax;
    values->busyMax = r->busyMax;
    published->time[ebpfMonGroupAsync] = *at;
    ebpfMonPublishedUnlock();
}

void ebpfMonAsyncRankingsPublish(ebpfMonAsyncRankings *r, uint64_t now)
{
    epicsTimeStamp at;

    epicsTimeGetCurrent(&at);
    beginSecond(r, now);
    ebpfMonTargetsLock(r->targets);
    r->eachAsync(addAsync, r);
    for (unsigned i = 0; i < r->slowCount; i++)
        ebpfMonDisplayName(r->targets, r->slow[i].t, r->slow[i].index, r->slow[i].row.name, EBPFMON_NAME_SIZE);
    ebpfMonTargetsUnlock(r->targets);
    publishRows(r, &at);
}
