/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <ellLib.h>
#include <epicsString.h>

#include "export/log/burst.h"

typedef struct burstEntry {
    ELLNODE node;          /* in the list byLast; it must be the first member */
    struct burstEntry *next;    /* the next one in the same bucket */
    unsigned hash;
    double begun, last;
    ebpfMonPut put;        /* the newest put, with the old value of the oldest one */
    ebpfMonBurstInfo info;
} burstEntry;

struct ebpfMonBurst {
    double idle, total;
    unsigned pvs;
    ebpfMonBurstSink sink;
    void *arg;
    ELLLIST byLast;        /* in order of the last put; the one that was quiet for the longest time comes first */
    unsigned buckets;
    burstEntry *bucket[];
};

ebpfMonBurst *ebpfMonBurstNew(unsigned pvs, double idle, double total, ebpfMonBurstSink sink, void *arg)
{
    ebpfMonBurst *b = calloc(1, sizeof(*b) + pvs * sizeof(b->bucket[0]));

    if (!b)
        return NULL;
    b->idle = idle;
    b->total = total;
    b->pvs = b->buckets = pvs;
    b->sink = sink;
    b->arg = arg;
    ellInit(&b->byLast);
    return b;
}

static void endBurst(ebpfMonBurst *b, burstEntry *e)
{
    burstEntry **at = &b->bucket[e->hash % b->buckets];

    if (e->info.puts > 1)
        b->sink(b->arg, &e->put, &e->info);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    ellDelete(&b->byLast, &e->node);
    free(e);
}

static burstEntry *findBurst(ebpfMonBurst *b, const ebpfMonPut *put, unsigned hash)
{
    burstEntry *e = b->bucket[hash % b->buckets];

    while (e && (e->hash != hash || strcmp(e->put.pv, put->pv) != 0 || strcmp(e->put.ioc, put->ioc) != 0))
        e = e->next;
    return e;
}

static int isSameWriter(const ebpfMonBurstWriter *w, const ebpfMonPut *put)
{
    return strcmp(w->user, put->user) == 0 && strcmp(w->host, put->host) == 0 && w->isUnsure == put->isUnsure &&
           (put->user[0] || w->through == put->through);
}

static void addToSummary(ebpfMonBurstInfo *info, const ebpfMonPut *put)
{
    unsigned i;

    info->puts++;
    info->hasRange = info->hasRange && put->isNumber;
    if (put->isNumber) {
        info->min = fmin(info->min, put->number);
        info->max = fmax(info->max, put->number);
    }
    for (i = 0; i < info->writers; i++) {
        if (isSameWriter(&info->writer[i], put)) {
            info->writer[i].count++;
            return;
        }
    }
    if (i == EBPFMON_BURST_WRITERS) {
        info->others++;
        return;
    }
    strcpy(info->writer[i].user, put->user);
    strcpy(info->writer[i].host, put->host);
    strcpy(info->writer[i].peer, put->peer);
    info->writer[i].through = put->through;
    info->writer[i].isUnsure = put->isUnsure;
    info->writer[i].count = 1;
    info->writers++;
}

static void beginBurst(ebpfMonBurst *b, const ebpfMonPut *put, unsigned hash, double now)
{
    burstEntry *e;

    b->sink(b->arg, put, NULL);
    if ((unsigned)ellCount(&b->byLast) >= b->pvs)
        endBurst(b, (burstEntry *)ellFirst(&b->byLast));
    e = malloc(sizeof(*e));
    if (!e) /* the next put then becomes a line, too */
        return;
    e->hash = hash;
    e->begun = e->last = now;
    e->put = *put;
    memset(&e->info, 0, sizeof(e->info));
    e->info.hasRange = 1;
    e->info.min = e->info.max = NAN;
    addToSummary(&e->info, put);
    e->next = b->bucket[hash % b->buckets];
    b->bucket[hash % b->buckets] = e;
    ellAdd(&b->byLast, &e->node);
}

int ebpfMonBurstAddPut(ebpfMonBurst *b, const ebpfMonPut *put, double now)
{
    unsigned hash = epicsStrHash(put->ioc, epicsStrHash(put->pv, 0));
    burstEntry *e = findBurst(b, put, hash);
    ebpfMonPut *kept;
    char old[EBPFMON_TEXT_SIZE];
    int hasOld, oldIsNumber, oldIsText;
    double oldNumber;
    long oldCount;

    if (e && (now - e->begun >= b->total || now - e->last >= b->idle)) {
        endBurst(b, e);
        e = NULL;
    }
    if (!e) {
        beginBurst(b, put, hash, now);
        return 1;
    }
    addToSummary(&e->info, put);
    e->last = now;
    ellDelete(&b->byLast, &e->node);
    ellAdd(&b->byLast, &e->node);
    kept = &e->put;
    if (put->at < kept->at) /* it is published late: the value of the newest one stays */
        return 0;
    strcpy(old, kept->old);
    hasOld = kept->hasOld;
    oldIsNumber = kept->oldIsNumber;
    oldIsText = kept->oldIsText;
    oldNumber = kept->oldNumber;
    oldCount = kept->oldCount;
    *kept = *put;
    strcpy(kept->old, old);
    kept->hasOld = hasOld;
    kept->oldIsNumber = oldIsNumber;
    kept->oldIsText = oldIsText;
    kept->oldNumber = oldNumber;
    kept->oldCount = oldCount;
    return 0;
}

void ebpfMonBurstTick(ebpfMonBurst *b, double now)
{
    burstEntry *e;

    while ((e = (burstEntry *)ellFirst(&b->byLast)) && now - e->last >= b->idle)
        endBurst(b, e);
}

void ebpfMonBurstFree(ebpfMonBurst *b)
{
    burstEntry *e;

    while ((e = (burstEntry *)ellFirst(&b->byLast)))
        endBurst(b, e);
    free(b);
}
