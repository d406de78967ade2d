/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/hash.h"
#include "usage/followedCircuits.h"

#define BUCKETS  1024
#define CIRCUITS 4096 /* as many as a wire has; more count as not followed */

typedef struct circuit {
    struct circuit *next;
    struct ebpfMonPeer peer;
} circuit;

struct ebpfMonFollowedCircuits {
    epicsMutexId lock; /* guards the rest */
    circuit *bucket[BUCKETS];
    unsigned count;
};

ebpfMonFollowedCircuits *ebpfMonFollowedCircuitsNew(void)
{
    ebpfMonFollowedCircuits *f = calloc(1, sizeof(*f));

    if (f)
        f->lock = epicsMutexMustCreate();
    return f;
}

void ebpfMonFollowedCircuitsFree(ebpfMonFollowedCircuits *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        while (f->bucket[i]) {
            circuit *c = f->bucket[i];

            f->bucket[i] = c->next;
            free(c);
        }
    epicsMutexDestroy(f->lock);
    free(f);
}

/* Where the circuit is in its bucket, or the end of the bucket. */
static circuit **findCircuit(ebpfMonFollowedCircuits *f, const struct ebpfMonPeer *peer)
{
    circuit **at = &f->bucket[ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^
                                             ((uint64_t)peer->port << 16 | peer->sport)) % BUCKETS];

    while (*at && memcmp(&(*at)->peer, peer, sizeof(*peer)) != 0)
        at = &(*at)->next;
    return at;
}

void ebpfMonFollowedCircuitsAdd(ebpfMonFollowedCircuits *f, const ebpfMonWireEvent *ev)
{
    int isOpened = ev->kind == ebpfMonWireOpened && (ev->first.seq[0] || ev->first.seq[1]);
    circuit **at;

    if (!isOpened && ev->kind != ebpfMonWireGap && ev->kind != ebpfMonWireUnread && ev->kind != ebpfMonWireGivenUp &&
        ev->kind != ebpfMonWireClosed)
        return;
    epicsMutexMustLock(f->lock);
    at = findCircuit(f, &ev->peer);
    if (isOpened && !*at && f->count < CIRCUITS && (*at = calloc(1, sizeof(**at)))) {
        (*at)->peer = ev->peer;
        f->count++;
    } else if (!isOpened && *at) {
        circuit *c = *at;

        *at = c->next;
        free(c);
        f->count--;
    }
    epicsMutexUnlock(f->lock);
}

int ebpfMonFollowedCircuitsHas(ebpfMonFollowedCircuits *f, const struct ebpfMonPeer *peer)
{
    int has;

    epicsMutexMustLock(f->lock);
    has = *findCircuit(f, peer) != NULL;
    epicsMutexUnlock(f->lock);
    return has;
}
