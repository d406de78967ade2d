/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/hash.h"
#include "publish/groupChanges.h"

#define ADD(hash, value) ebpfMonHashFnv64(hash, &(value), sizeof(value))
/* The first "count" elements of an array; all, if it has fewer. */
#define ADD_ROWS(hash, array, count) \
    ebpfMonHashFnv64(hash, array, ((count) < sizeof(array) / sizeof((array)[0]) ? (count) : \
                     sizeof(array) / sizeof((array)[0])) * sizeof((array)[0]))

static uint64_t hashState(const ebpfMonPublished *p)
{
    uint64_t hash = ADD(EBPFMON_FNV64_BEGIN, p->state);

    hash = ADD(hash, p->stateMessage);
    hash = ADD(hash, p->host);
    hash = ADD(hash, p->losses);
    hash = ADD(hash, p->audit);
    hash = ADD(hash, p->costs);
    return ADD(hash, p->packets);
}

static uint64_t hashIocs(const ebpfMonIocValues *v)
{
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->ioc, v->rows);

    hash = ADD(hash, v->count);
    hash = ADD(hash, v->gone);
    hash = ADD(hash, v->timed);
    hash = ADD(hash, v->slowUntimed);
    return ADD(hash, v->shown);
}

/* Every put increases the count, so it is enough to compare the counts. */
static uint64_t hashPuts(const ebpfMonPutValues *v)
{
    uint64_t hash = ADD(EBPFMON_FNV64_BEGIN, v->count);

    hash = ADD(hash, v->denied);
    return ADD(hash, v->rate);
}

static uint64_t hashProcessings(const ebpfMonProcValues *v)
{
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->busiest, v->busiestCount);

    hash = ADD(hash, v->count);
    hash = ADD(hash, v->rate);
    return ADD(hash, v->busiestCount);
}

static uint64_t hashChains(const ebpfMonChainValues *v)
{
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->slowest, v->slowestCount);

    hash = ADD(hash, v->slowestCount);
    hash = ADD(hash, v->selectedRoot);
    hash = ADD(hash, v->selectedFound);
    hash = ADD(hash, v->hist);
    hash = ADD(hash, v->histP50);
    hash = ADD(hash, v->histP99);
    hash = ADD(hash, v->histMax);
    return ADD(hash, v->histEdge);
}

static uint64_t hashAsyncs(const ebpfMonAsyncValues *v)
{
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->slowest, v->slowestCount);

    hash = ADD(hash, v->slowestCount);
    hash = ADD(hash, v->selectedFound);
    hash = ADD(hash, v->hist);
    hash = ADD(hash, v->latencyMax);
    return ADD(hash, v->busyMax);
}

static uint64_t hashWatched(const ebpfMonWatchValues *v)
{
    return ADD_ROWS(EBPFMON_FNV64_BEGIN, v->row, v->count);
}

static uint64_t hashSearches(const ebpfMonSearches *v)
{
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->name, v->names);

    hash = ADD_ROWS(hash, v->client, v->clients);
    hash = ADD_ROWS(hash, v->server, v->servers);
    hash = ADD(hash, v->count);
    hash = ADD(hash, v->rate);
    hash = ADD(hash, v->replaced);
    hash = ADD(hash, v->never);
    hash = ADD(hash, v->names);
    hash = ADD(hash, v->clients);
    hash = ADD(hash, v->beacons);
    hash = ADD(hash, v->beaconRate);
    hash = ADD(hash, v->heard);
    return ADD(hash, v->servers);
}

static uint64_t hashHealth(const ebpfMonHealth *v)
{
    const double highest[] = { v->cpuMax, v->memMax, v->fdMax, v->callbackMax, v->onceMax, v->holdMax, v->casMax };
    const uint64_t counts[] = {v->iocs,      v->scans,    v->lateCount, v->gone,     v->hangs,
                               v->hangLines, v->restarts, v->events,    v->eventHead, v->still,
                               v->lateNow,   (uint64_t)v->isFarLate};
    uint64_t hash = ADD_ROWS(EBPFMON_FNV64_BEGIN, v->ioc, v->iocs);

    hash = ADD_ROWS(hash, v->scan, v->scans);
    hash = ADD_ROWS(hash, v->hangLine, v->hangLines);
    hash = ADD_ROWS(hash, v->event, v->events);
    hash = ADD(hash, v->stillText);
    hash = ADD(hash, v->isEventTrouble);
    hash = ADD_ROWS(hash, v->goneIoc, v->goneRows);
    hash = ADD(hash, v->lateText);
    hash = ADD(hash, v->lateBrief);
    hash = ADD(hash, highest);
    return ADD(hash, counts);
}

/* Returns 0 if another thread writes this group. */
static int findHash(const ebpfMonPublished *p, ebpfMonGroup group, uint64_t *hash)
{
    switch (group) {
    case ebpfMonGroupState:  *hash = hashState(p); return 1;
    case ebpfMonGroupIocs:   *hash = hashIocs(&p->iocs); return 1;
    case ebpfMonGroupPuts:   *hash = hashPuts(&p->puts); return 1;
    case ebpfMonGroupProc:   *hash = hashProcessings(&p->processings); return 1;
    case ebpfMonGroupChains: *hash = hashChains(&p->chains); return 1;
    case ebpfMonGroupAsync:  *hash = hashAsyncs(&p->asyncs); return 1;
    case ebpfMonGroupWatch:  *hash = hashWatched(&p->watched); return 1;
    case ebpfMonGroupSearch: *hash = hashSearches(&p->searches); return 1;
    case ebpfMonGroupHealth: *hash = hashHealth(&p->health); return 1;
    default: return 0;
    }
}

int ebpfMonGroupChangesFind(ebpfMonGroupChanges *changes, ebpfMonPublished *published, ebpfMonGroup group)
{
    uint64_t hash;
    int isSame;

    if (!findHash(published, group, &hash))
        return 0;
    hash = ADD(hash, published->isMeasured); /* until the first measurement the PVs are INVALID, so they must process
                                              * once more then, even with the same value */
    isSame = changes->group[group].isKnown && changes->group[group].hash == hash;
    if (isSame)
        published->time[group] = changes->group[group].time;
    changes->group[group].isKnown = 1;
    changes->group[group].hash = hash;
    changes->group[group].time = published->time[group];
    return !isSame;
}
