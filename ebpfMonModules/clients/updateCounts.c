/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/hash.h"
#include "clients/updateCounts.h"

#define BUCKETS 16384 /* a power of two */
#define KEPT    2     /* A count stays if so many looks in a row did not ask for it: its channel may be newer than
                       * they are */

typedef struct entry {
    struct entry *next;  /* in its bucket */
    struct ebpfMonPeer peer;
    uint32_t sid;
    uint32_t stretch;    /* ev->stretch of its first update. Another value later means that bytes were lost */
    unsigned missed;     /* so many looks in a row did not ask for it */
    ebpfMonUpdateCount count;
} entry;

struct ebpfMonUpdateCounts {
    epicsMutexId lock;   /* guards what follows */
    entry   *bucket[BUCKETS];
    unsigned entries;
};

ebpfMonUpdateCounts *ebpfMonUpdateCountsNew(void)
{
    ebpfMonUpdateCounts *counts = calloc(1, sizeof(*counts));

    if (counts)
        counts->lock = epicsMutexMustCreate();
    return counts;
}

void ebpfMonUpdateCountsFree(ebpfMonUpdateCounts *counts)
{
    if (!counts)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (entry *e = counts->bucket[i], *next; e; e = next) {
            next = e->next;
            free(e);
        }
    epicsMutexDestroy(counts->lock);
    free(counts);
}

/* The key has both ends of the circuit, because one port of a client may be connected to several servers. */
static entry **findCountPlace(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid)
{
    uint64_t hash = ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^ ebpfMonHashMix((uint64_t)sid << 32 |
                                   (uint64_t)peer->port << 16 | peer->sport));
    entry **place = &counts->bucket[hash % BUCKETS];

    while (*place && ((*place)->sid != sid || memcmp(&(*place)->peer, peer, sizeof(*peer)) != 0))
        place = &(*place)->next;
    return place;
}

void ebpfMonUpdateCountsAdd(ebpfMonUpdateCounts *counts, const ebpfMonWireEvent *ev)
{
    entry **place, *e;

    if (!ev->isUpdate)
        return;
    epicsMutexMustLock(counts->lock);
    place = findCountPlace(counts, &ev->peer, ev->sid);
    if (!*place && counts->entries < EBPFMON_UPDATE_COUNTS)
        *place = calloc(1, sizeof(**place));
    e = *place;
    if (e && !e->count.updates) {
        e->peer = ev->peer;
        e->sid = ev->sid;
        e->stretch = ev->stretch;
        counts->entries++;
    }
    if (e) {
        e->count.updates++;
        e->count.bytes += ev->end - ev->seq;
        e->count.isAtLeast |= ev->stretch != e->stretch;
        e->count.baseType = ev->have < ev->elementSize ? -1 : ev->baseType;
        memcpy(e->count.last, ev->data, ev->have < sizeof(e->count.last) ? ev->have : sizeof(e->count.last));
        e->count.lastAt = ev->time;
    }
    epicsMutexUnlock(counts->lock);
}

int ebpfMonUpdateCountsFind(ebpfMonUpdateCounts *counts, const struct ebpfMonPeer *peer, uint32_t sid,
                            ebpfMonUpdateCount *count)
{
    entry *e;

    epicsMutexMustLock(counts->lock);
    e = *findCountPlace(counts, peer, sid);
    if (e) {
        *count = e->count;
        e->missed = 0;
    }
    epicsMutexUnlock(counts->lock);
    return e ? 0 : -1;
}

void ebpfMonUpdateCountsForget(ebpfMonUpdateCounts *counts)
{
    epicsMutexMustLock(counts->lock);
    for (unsigned i = 0; i < BUCKETS; i++)
        for (entry **place = &counts->bucket[i]; *place;) {
            entry *e = *place;

            if (e->missed++ < KEPT) {
                place = &e->next;
                continue;
            }
            *place = e->next;
            free(e);
            counts->entries--;
        }
    epicsMutexUnlock(counts->lock);
}
