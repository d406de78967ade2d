/* SPDX-License-Identifier: BSD-3-Clause */
#include <ellLib.h>
#include <epicsTime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "model/published.h"
#include "probe/hist.h"
#include "probe/kernelTables.h"
#include "publish/rankings.h"

/* --- heat maps ---
 *
 * A column is the difference of counts at two times: how often each record processed, and how many chains are in each
 * octave. If a count became smaller, an IOC came or ended meanwhile, and the value is not known (NaN). */

#define COLUMNS EBPFMON_HEAT_COLUMNS
#define TRACKED (2 * EBPFMON_TOP_MAX) /* records with known history: those that were among the busiest */

typedef struct {
    char     name[EBPFMON_NAME_SIZE]; /* empty: this place is free */
    uint64_t count;      /* processings at the last column */
    int      isCounted;  /* nonzero: the record was in the newest column, so "count" is known */
    double   rate[COLUMNS];
} heatRecord;

struct ebpfMonHeatMaps {
    uint64_t begin;      /* monotonic ns; begin of the column that is being made; 0: there is none */
    unsigned busiestCount;
    ebpfMonProcRow busiest[EBPFMON_TOP_MAX]; /* as published */
    double   hist[EBPFMON_HEAT_OCTAVES];
    char     root[EBPFMON_NAME_SIZE];
    double   histBefore[EBPFMON_HEAT_OCTAVES];
    char     rootBefore[EBPFMON_NAME_SIZE];
    heatRecord record[TRACKED];
    double   chains[EBPFMON_HEAT_OCTAVES][COLUMNS]; /* the shortest octave first */
    const heatRecord *shown[TRACKED];
};

static void clearRow(double *row)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        row[i] = NAN;
}

static void appendColumn(double *row, double value)
{
    memmove(row, row + 1, (COLUMNS - 1) * sizeof(row[0]));
    row[COLUMNS - 1] = value;
}

ebpfMonHeatMaps *ebpfMonHeatMapsNew(void)
{
    ebpfMonHeatMaps *maps = calloc(1, sizeof(*maps));
    ebpfMonHeatValues *values;

    if (!maps)
        return NULL;
    for (unsigned i = 0; i < TRACKED; i++)
        clearRow(maps->record[i].rate);
    for (unsigned o = 0; o < EBPFMON_HEAT_OCTAVES; o++)
        clearRow(maps->chains[o]);
    values = &ebpfMonPublishedLock()->heat;
    values->records = 0;
    memset(values->record, 0, sizeof(values->record));
    for (unsigned i = 0; i < EBPFMON_HEAT_RECORDS; i++)
        clearRow(values->rate + i * COLUMNS);
    for (unsigned o = 0; o < EBPFMON_HEAT_OCTAVES; o++)
        clearRow(values->chains + o * COLUMNS);
    ebpfMonPublishedUnlock();
    return maps;
}

void ebpfMonHeatMapsFree(ebpfMonHeatMaps *maps)
{
    free(maps);
}

static void copyPublished(ebpfMonHeatMaps *m)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    m->busiestCount = published->processings.busiestCount;
    memcpy(m->busiest, published->processings.busiest, m->busiestCount * sizeof(m->busiest[0]));
    memcpy(m->hist, published->chains.hist, sizeof(m->hist));
    memcpy(m->root, published->chains.selectedRoot, sizeof(m->root));
    ebpfMonPublishedUnlock();
}

/* The sum of all columns. Columns that are not known do not count. */
static double sumRates(const heatRecord *r)
{
    double sum = 0;

    for (unsigned i = 0; i < COLUMNS; i++)
        if (isfinite(r->rate[i]))
            sum += r->rate[i];
    return sum;
}

/* Finds the record of this name. If there is none, its place is a free one, or that of the record that processed least.
 * NULL: all places have records of this column. */
static heatRecord *findRecord(ebpfMonHeatMaps *m, const char *name)
{
    heatRecord *least = NULL;
    double leastSum = INFINITY;

    for (unsigned i = 0; i < TRACKED; i++)
        if (strcmp(m->record[i].name, name) == 0)
            return &m->record[i];
    for (unsigned i = 0; i < TRACKED; i++) {
        heatRecord *r = &m->record[i];
        double sum = r->name[0] ? sumRates(r) : -1;

        if (!r->isCounted && sum < leastSum) { /* records of this column keep their places */
            least = r;
            leastSum = sum;
        }
    }
    if (!least)
        return NULL;
    clearRow(least->rate);
    least->count = 0;
    memcpy(least->name, name, sizeof(least->name));
    return least;
}

static void addRecords(ebpfMonHeatMaps *m, double seconds)
{
    double rate[TRACKED];
    int isKnown[TRACKED];

    for (unsigned i = 0; i < TRACKED; i++) {
        rate[i] = NAN;
        isKnown[i] = m->record[i].isCounted;
        m->record[i].isCounted = 0;
    }
    for (unsigned i = 0; i < m->busiestCount; i++) {
        const ebpfMonProcRow *busy = &m->busiest[i];
        heatRecord *r = findRecord(m, busy->name);
        size_t at;

        if (!r)
            continue;
        at = (size_t)(r - m->record);
        if (isKnown[at] && r->count && busy->count >= r->count && seconds > 0)
            rate[at] = (double)(busy->count - r->count) / seconds;
        r->count = busy->count;
        r->isCounted = 1;
    }
    for (unsigned i = 0; seconds > 0 && i < TRACKED; i++)
        appendColumn(m->record[i].rate, rate[i]);
}

static void addChains(ebpfMonHeatMaps *m, double seconds)
{
    int isKnown = seconds > 0 && strcmp(m->root, m->rootBefore) == 0;

    if (strcmp(m->root, m->rootBefore) != 0)
        for (unsigned o = 0; o < EBPFMON_HEAT_OCTAVES; o++)
            clearRow(m->chains[o]); /* the columns so far are of other chains */
    for (unsigned o = 0; o < EBPFMON_HEAT_OCTAVES; o++)
        isKnown = isKnown && m->hist[o] >= m->histBefore[o];
    for (unsigned o = 0; seconds > 0 && o < EBPFMON_HEAT_OCTAVES; o++)
        appendColumn(m->chains[o], isKnown ? m->hist[o] - m->histBefore[o] : NAN);
    memcpy(m->histBefore, m->hist, sizeof(m->hist));
    memcpy(m->rootBefore, m->root, sizeof(m->root));
}

static int compareRecordSums(const void *a, const void *b)
{
    const heatRecord *x = *(const heatRecord *const *)a, *y = *(const heatRecord *const *)b;
    double sx = sumRates(x), sy = sumRates(y);

    return sx > sy ? -1 : sx < sy ? 1 : strcmp(x->name, y->name);
}

static void publishMaps(ebpfMonHeatMaps *m)
{
    ebpfMonHeatValues *values;
    ebpfMonPublished *published;
    unsigned count = 0;

    for (unsigned i = 0; i < TRACKED; i++)
        if (m->record[i].name[0] && sumRates(&m->record[i]) > 0)
            m->shown[count++] = &m->record[i];
    qsort(m->shown, count, sizeof(m->shown[0]), compareRecordSums);
    published = ebpfMonPublishedLock();
    values = &published->heat;
    values->records = count < EBPFMON_HEAT_RECORDS ? count : EBPFMON_HEAT_RECORDS;
    for (unsigned i = 0; i < EBPFMON_HEAT_RECORDS; i++) {
        if (i >= values->records) {
            clearRow(values->rate + i * COLUMNS);
            values->record[i].name[0] = 0;
            continue;
        }
        memcpy(values->record[i].name, m->shown[i]->name, EBPFMON_NAME_SIZE);
        memcpy(values->rate + i * COLUMNS, m->shown[i]->rate, sizeof(m->shown[i]->rate));
    }
    for (unsigned o = 0; o < EBPFMON_HEAT_OCTAVES; o++)
        memcpy(values->chains + (EBPFMON_HEAT_OCTAVES - 1 - o) * COLUMNS, m->chains[o], sizeof(m->chains[o]));
    epicsTimeGetCurrent(&published->time[ebpfMonGroupHeat]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupHeat);
}

void ebpfMonHeatMapsPublish(ebpfMonHeatMaps *m, uint64_t now)
{
    double seconds = m->begin ? (double)(now - m->begin) / 1e9 : 0;

    if (m->begin && seconds < EBPFMON_HEAT_SECONDS - 0.5) /* the publishing thread may be early by some ms */
        return;
    copyPublished(m);
    addRecords(m, seconds);
    addChains(m, seconds);
    m->begin = now;
    publishMaps(m);
}

/* --- names --- */

#define IOC_LEAST 18 /* characters of the IOC's name that stay beside a long name of a record */

static void joinNames(const char *record, const char *ioc, char *name, size_t size)
{
    size_t room = size - 2 /* "@" and the end */, length = strlen(record), most = IOC_LEAST;
    char place[EBPFMON_IOCNAME_SIZE];

    if (length + most < room)
        most = room - length;
    ebpfMonTextCopy(place, most < sizeof(place) ? most + 1 : sizeof(place), ioc);
    ebpfMonTextCopy(name, room - strlen(place) + 1, record);
    length = strlen(name);
    snprintf(name + length, size - length, "@%s", place);
}

void ebpfMonDisplayName(ebpfMonTargets *targets, const ebpfMonTarget *t, uint32_t index, char *name, size_t size)
{
    const char *plain = ebpfMonCatalogueName(t->cat, index);

    for (const ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o; o = o->next)
        if (o != t && !o->gone && o->running && o->cat && ebpfMonCatalogueFind(o->cat, plain) >= 0) {
            joinNames(plain, t->name, name, size);
            return;
        }
    snprintf(name, size, "%s", plain);
}

/* Finds the IOC that has the record of this slot; *index gets the place of the record in its catalogue. NULL: there is
 * none. Under the targets lock. */
static ebpfMonTarget *findDisplaySlot(ebpfMonTargets *targets, uint32_t slot, uint32_t *index)
{
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(targets); t; t = t->next)
        if (t->slot != UINT32_MAX && t->cat && slot - t->slot < t->cat->count) {
            *index = slot - t->slot;
            return t;
        }
    return NULL;
}

/* --- asynchronous records --- */

/* The rankings are made in this context under the targets lock, and then copied into the published values. */

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
} watchedAsync;

struct ebpfMonAsyncRankings {
    ebpfMonTargets    *targets;
    ebpfMonAsyncSource eachAsync;
    uint64_t      now;
    slowRecord    slow[EBPFMON_TOP_MAX];
    unsigned      slowCount;
    watchedAsync watched[EBPFMON_WATCH_MAX];
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
        watchedAsync *w = &r->watched[i];

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
        watchedAsync *w = &r->watched[i];

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
    const ebpfMonTarget *t = findDisplaySlot(r->targets, slot, &index);
    ebpfMonAsyncRow row;
    const char *name;
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
    r->latencyMax = fmax(r->latencyMax, ebpfMonHistFindRecent(&s->recent, r->now, NULL));
    r->busyMax = fmax(r->busyMax, row.busy);
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

/* --- records, chains and puts --- */

/*
 * Each ranking is made in this context under the targets lock, and then copied into the published values. To find names
 * and to read the kernel's tables takes longer than the lock of the published values may be held.
 */

typedef struct {
    const ebpfMonTarget *t;
    uint32_t index;
    float    rate;
    uint64_t count;
} busyRecord;

typedef struct {
    const ebpfMonTarget *t;
    uint32_t index;
    double   mean;       /* ns */
    struct ebpfMonRootStat stat;
} slowRoot;

/* The part of an IOC, found by its iocId. */
typedef struct {
    ELLNODE  node;
    uint32_t iocId;
    uint64_t slotAt;  /* ebpfMonTarget.slotAt of the arrays: with other slots the counts begin anew */
    void     *arrays;
    uint64_t *counts; /* at the last publication, by index of the catalogue, as the next */
    float    *rate;
    ebpfMonIocPart shared;
} iocPart;

/* A watched record. It has the same index as its row in the published values. */
typedef struct {
    char     record[EBPFMON_NAME_SIZE]; /* as the operator named it: perhaps an alias */
    char     real[EBPFMON_NAME_SIZE];   /* its real name; empty: not found yet */
    int      found, atLeast;
    uint64_t procCount, chains;
    double   procRate, latMean, latP99, latMax;
} watchedRecord;

struct ebpfMonRankings {
    ebpfMonTargets *targets; /* these three are the caller's */
    const ebpfMonRankingSources *sources;
    uint64_t *counts;    /* processings of the records of one IOC */
    size_t   countRoom;
    uint64_t processed;  /* processings since the start, also of IOCs that have ended */
    ELLLIST  parts;      /* iocPart */
    busyRecord busy[EBPFMON_TOP_MAX];
    ebpfMonProcRow procRow[EBPFMON_TOP_MAX];
    unsigned busyCount;
    slowRoot slowPlace[EBPFMON_TOP_MAX];
    slowRoot *slow[EBPFMON_TOP_MAX]; /* the slowest first */
    ebpfMonChainRow chainRow[EBPFMON_TOP_MAX];
    unsigned slowCount;
    uint64_t hist[EBPFMON_BUCKETS]; /* the sum of all roots that are shown */
    double   histMax;    /* ns */
    char     selectedRoot[EBPFMON_NAME_SIZE];
    int      selectedFound;
    watchedRecord watched[EBPFMON_WATCH_MAX];
    unsigned watchedCount;
};

const ebpfMonRankingSources ebpfMonRankingSourcesKernel = {
    ebpfMonTargetCountRecords, ebpfMonKernelEachRoot,
};

ebpfMonRankings *ebpfMonRankingsNew(ebpfMonTargets *targets, const ebpfMonRankingSources *sources)
{
    ebpfMonRankings *r = calloc(1, sizeof(*r));

    if (r) {
        r->targets = targets;
        r->sources = sources;
        ellInit(&r->parts);
    }
    return r;
}

static void freePart(ebpfMonRankings *r, iocPart *part)
{
    ellDelete(&r->parts, &part->node);
    free(part->arrays);
    free(part);
}

void ebpfMonRankingsFree(ebpfMonRankings *r)
{
    if (!r)
        return;
    while (ellFirst(&r->parts))
        freePart(r, (iocPart *)ellFirst(&r->parts));
    free(r->counts);
    free(r);
}

static iocPart *findPart(ebpfMonRankings *r, const ebpfMonTarget *t)
{
    iocPart *part;

    for (part = (iocPart *)ellFirst(&r->parts); part; part = (iocPart *)ellNext(&part->node))
        if (part->iocId == t->iocId)
            return part;
    part = calloc(1, sizeof(*part));
    if (part) {
        part->iocId = t->iocId;
        ellAdd(&r->parts, &part->node);
    }
    return part;
}

ebpfMonIocPart *ebpfMonRankingsFindIoc(ebpfMonRankings *r, const ebpfMonTarget *t)
{
    iocPart *part = findPart(r, t);

    return part ? &part->shared : NULL;
}

/* With arrays for the records of the IOC. NULL without memory. */
static iocPart *findCounted(ebpfMonRankings *r, const ebpfMonTarget *t)
{
    iocPart *part = findPart(r, t);
    void *arrays;

    if (!part || (part->arrays && part->slotAt == t->slotAt))
        return part;
    arrays = ebpfMonArraysMake((size_t)t->cat->count + 1, (const ebpfMonArrayPart[]){
        EBPFMON_PART(part->counts), EBPFMON_PART(part->rate),
    }, 2);
    free(part->arrays);
    part->arrays = arrays;
    part->slotAt = t->slotAt;
    return arrays ? part : NULL;
}

/* Of IOCs that are forgotten. */
static void dropParts(ebpfMonRankings *r)
{
    for (iocPart *part = (iocPart *)ellFirst(&r->parts), *next; part; part = next) {
        next = (iocPart *)ellNext(&part->node);
        if (!ebpfMonTargetsFindById(r->targets, part->iocId))
            freePart(r, part);
    }
}

static void copyWatched(ebpfMonRankings *r, const ebpfMonPublished *published)
{
    r->watchedCount = published->watched.count;
    for (unsigned i = 0; i < r->watchedCount; i++) {
        memcpy(r->watched[i].record, published->watched.row[i].record, EBPFMON_NAME_SIZE);
        memcpy(r->watched[i].real, published->watched.row[i].real, EBPFMON_NAME_SIZE);
    }
}

/* --- records ---------------------------------------------------------------------------------------- */

/* The list begins with the busiest record. Most records are not busier than its last one. */
static void insertBusy(ebpfMonRankings *r, busyRecord b)
{
    busyRecord *top = r->busy;
    unsigned i = r->busyCount;

    if (i == EBPFMON_TOP_MAX &&
        (b.rate < top[i - 1].rate || (b.rate == top[i - 1].rate && b.count <= top[i - 1].count)))
        return;
    i = i < EBPFMON_TOP_MAX ? r->busyCount++ : i - 1;
    for (; i > 0 && (top[i - 1].rate < b.rate || (top[i - 1].rate == b.rate && top[i - 1].count < b.count)); i--)
        top[i] = top[i - 1];
    top[i] = b;
}

/* Returns the processings per second of all records of this IOC that are shown. */
static double countIoc(ebpfMonRankings *r, ebpfMonTarget *t, iocPart *part, double seconds)
{
    double rate = 0;

    r->sources->countRecords(t, r->counts);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        uint64_t count = r->counts[i], before = part->counts[i], delta = count >= before ? count - before : 0;

        part->counts[i] = count;
        part->rate[i] += 0.5f * ((float)((double)delta / seconds) - part->rate[i]);
        if (delta == 0 && part->rate[i] < 1e-3f)
            part->rate[i] = 0;
        if (!(t->how[i] & EBPFMON_SHOWN))
            continue;
        r->processed += delta;
        part->shared.processed += delta;
        rate += (double)delta / seconds;
        if (count && !t->gone && t->level >= ebpfMonLevelCounts)
            insertBusy(r, (busyRecord){ t, i, part->rate[i], count });
    }
    return rate;
}

static void makeProcRows(ebpfMonRankings *r)
{
    for (unsigned i = 0; i < r->busyCount; i++) {
        const busyRecord *b = &r->busy[i];
        ebpfMonProcRow *row = &r->procRow[i];

        ebpfMonDisplayName(r->targets, b->t, b->index, row->name, sizeof(row->name));
        row->count = b->count;
        row->rate = (double)b->rate;
        row->atLeast = ebpfMonTargetIsAtLeast(b->t, b->index);
    }
}

static void findWatched(ebpfMonRankings *r)
{
    for (unsigned i = 0; i < r->watchedCount; i++) {
        watchedRecord *w = &r->watched[i];

        w->found = 0;
        for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(r->targets); t && !w->found; t = t->next) {
            long k = t->cat && t->slot != UINT32_MAX && !t->gone ? ebpfMonCatalogueFind(t->cat, w->record) : -1;
            const iocPart *part = k < 0 ? NULL : findCounted(r, t);

            if (!part)
                continue;
            w->found = 1;
            snprintf(w->real, sizeof(w->real), "%s", ebpfMonCatalogueName(t->cat, (uint32_t)k));
            w->procCount = part->counts[k];
            w->procRate = (double)part->rate[k];
            w->atLeast = ebpfMonTargetIsAtLeast(t, (uint32_t)k);
        }
    }
}

static void publishRecords(const ebpfMonRankings *r, double rate, const epicsTimeStamp *at)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonProcValues *values = &published->processings;

    values->count = r->processed;
    values->rate += 0.5 * (rate - values->rate);
    if (rate == 0 && values->rate < 1e-3)
        values->rate = 0;
    values->busiestCount = r->busyCount;
    memcpy(values->busiest, r->procRow, r->busyCount * sizeof(values->busiest[0]));
    for (unsigned i = 0; i < r->watchedCount; i++) {
        const watchedRecord *w = &r->watched[i];
        ebpfMonWatchRow *row = &published->watched.row[i];

        row->found = w->found;
        if (!w->found)
            continue;
        memcpy(row->real, w->real, sizeof(row->real));
        row->procCount = w->procCount;
        row->procRate = w->procRate;
        row->atLeast = w->atLeast;
    }
    published->time[ebpfMonGroupProc] = *at;
    ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, *at, ebpfMonClockMonotonic());
    ebpfMonPublishedUnlock();
}

void ebpfMonRankingsPublishRecords(ebpfMonRankings *r, double seconds)
{
    double rate = 0;
    epicsTimeStamp at;
    iocPart *part;

    epicsTimeGetCurrent(&at);
    copyWatched(r, ebpfMonPublishedLock());
    ebpfMonPublishedUnlock();
    r->busyCount = 0;
    ebpfMonTargetsLock(r->targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(r->targets); t; t = t->next) {
        if (t->slot == UINT32_MAX || !t->cat)
            continue;
        part = findCounted(r, t);
        if (!part ||
            ebpfMonArrayGrow(&r->counts, &r->countRoom, (size_t)t->cat->count + 1, 1024, sizeof(*r->counts)))
            break;
        rate += countIoc(r, t, part, seconds);
    }
    dropParts(r);
    makeProcRows(r);
    findWatched(r);
    ebpfMonTargetsUnlock(r->targets);
    publishRecords(r, rate, &at);
}

/* --- chains ----------------------------------------------------------------------------------------- */

static void insertSlow(ebpfMonRankings *r, const ebpfMonTarget *t, uint32_t index, const struct ebpfMonRootStat *s)
{
    double mean = (double)s->sum / (double)s->count;
    unsigned i = r->slowCount;

    slowRoot *place;

    if (i == EBPFMON_TOP_MAX && mean <= r->slow[i - 1]->mean)
        return;
    if (i < EBPFMON_TOP_MAX)
        place = &r->slowPlace[r->slowCount++];
    else
        place = r->slow[--i];
    for (; i > 0 && r->slow[i - 1]->mean < mean; i--)
        r->slow[i] = r->slow[i - 1];
    *place = (slowRoot){ t, index, mean, *s };
    r->slow[i] = place;
}

static void setWatchedLatency(watchedRecord *w, const struct ebpfMonRootStat *s)
{
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };

    ebpfMonHistAdd(hist, s->hist, EBPFMON_BUCKETS);
    w->chains = s->count;
    w->latMean = (double)s->sum / (double)s->count / 1000;
    w->latP99 = ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.99, (double)s->max) / 1000;
    w->latMax = (double)s->max / 1000;
}

static void addRoot(void *arg, uint32_t slot, const struct ebpfMonRootStat *s)
{
    ebpfMonRankings *r = arg;
    uint32_t index = 0;
    ebpfMonTarget *t = findDisplaySlot(r->targets, slot, &index);
    const char *name;
    int isShown;

    if (!t || t->gone)
        return;
    name = ebpfMonCatalogueName(t->cat, index);
    isShown = !!(t->how[index] & EBPFMON_SHOWN);
    for (unsigned i = 0; s->count && i < r->watchedCount; i++)
        if (strcmp(r->watched[i].real, name) == 0)
            setWatchedLatency(&r->watched[i], s);
    if (r->selectedRoot[0] ? strcmp(name, r->selectedRoot) == 0 : isShown) {
        ebpfMonHistAdd(r->hist, s->hist, EBPFMON_BUCKETS);
        r->histMax = fmax(r->histMax, (double)s->max);
        r->selectedFound = 1;
    }
    if (s->count && isShown)
        insertSlow(r, t, index, s);
}

static void makeChainRow(const ebpfMonRankings *r, const slowRoot *s, ebpfMonChainRow *row)
{
    const struct ebpfMonRootStat *stat = &s->stat;
    uint64_t hist[EBPFMON_BUCKETS] = { 0 };

    ebpfMonHistAdd(hist, stat->hist, EBPFMON_BUCKETS);
    ebpfMonDisplayName(r->targets, s->t, s->index, row->name, sizeof(row->name));
    snprintf(row->root, sizeof(row->root), "%s", ebpfMonCatalogueName(s->t->cat, s->index));
    snprintf(row->ioc, sizeof(row->ioc), "%s", s->t->name);
    ebpfMonHistOctaves(hist, EBPFMON_BUCKETS, row->hist, EBPFMON_HIST_MAX);
    row->count = stat->count;
    row->last = (double)stat->last / 1000;
    row->mean = s->mean / 1000;
    row->p50 = ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.5, (double)stat->max) / 1000;
    row->p99 = ebpfMonHistQuantile(hist, EBPFMON_BUCKETS, 0.99, (double)stat->max) / 1000;
    row->max = (double)stat->max / 1000;
    row->waitMean = (double)stat->waitSum / (double)stat->count / 1000;
    row->waitMax = (double)stat->waitMax / 1000;
}

static void beginChains(ebpfMonRankings *r)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();

    memcpy(r->selectedRoot, published->chains.selectedRoot, sizeof(r->selectedRoot));
    copyWatched(r, published);
    ebpfMonPublishedUnlock();
    for (unsigned i = 0; i < r->watchedCount; i++) {
        r->watched[i].chains = 0;
        r->watched[i].latMean = r->watched[i].latP99 = r->watched[i].latMax = NAN;
    }
    r->slowCount = 0;
    r->selectedFound = 0;
    memset(r->hist, 0, sizeof(r->hist));
    r->histMax = 0;
}

static void publishChains(const ebpfMonRankings *r, const epicsTimeStamp *at)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonChainValues *values = &published->chains;

    for (unsigned i = 0; i < r->watchedCount; i++) {
        published->watched.row[i].chains = r->watched[i].chains;
        published->watched.row[i].latMean = r->watched[i].latMean;
        published->watched.row[i].latP99 = r->watched[i].latP99;
        published->watched.row[i].latMax = r->watched[i].latMax;
    }
    values->slowestCount = r->slowCount;
    memcpy(values->slowest, r->chainRow, r->slowCount * sizeof(values->slowest[0]));
    ebpfMonHistOctaves(r->hist, EBPFMON_BUCKETS, values->hist, EBPFMON_HIST_MAX);
    for (unsigned o = 0; o < EBPFMON_HIST_MAX; o++)
        values->histEdge[o] = ebpfMonHistOctaveEdge(o) / 1000;
    values->histP50 = ebpfMonHistQuantile(r->hist, EBPFMON_BUCKETS, 0.5, r->histMax) / 1000;
    values->histP99 = ebpfMonHistQuantile(r->hist, EBPFMON_BUCKETS, 0.99, r->histMax) / 1000;
    values->histMax = isnan(values->histP99) ? NAN : r->histMax / 1000;
    values->selectedFound = r->selectedFound;
    published->time[ebpfMonGroupChains] = *at;
    ebpfMonPublishedUnlock();
}

void ebpfMonRankingsPublishChains(ebpfMonRankings *r)
{
    epicsTimeStamp at;

    epicsTimeGetCurrent(&at); /* the values contain all chains that ended before this time */
    beginChains(r);
    ebpfMonTargetsLock(r->targets);
    r->sources->eachRoot(addRoot, r);
    for (unsigned i = 0; i < r->slowCount; i++)
        makeChainRow(r, r->slow[i], &r->chainRow[i]);
    ebpfMonTargetsUnlock(r->targets);
    publishChains(r, &at);
}
