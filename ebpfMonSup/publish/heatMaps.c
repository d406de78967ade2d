/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A column is the difference of counts at two times: how often each record processed, and how many chains are in each
 * octave. If a count became smaller, an IOC came or ended meanwhile, and the value is not known (NaN).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <epicsTime.h>

#include "publish/heatMaps.h"

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
