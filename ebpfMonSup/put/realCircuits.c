/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "put/realCircuits.h"

#define PLACES 1024 /* by the number of the circuit: a later one may replace an earlier one, which is asked for again */

#define CLOCKS_NS 1000000 /* the time of a packet is computed by two clocks */

typedef struct {
    uint64_t circuit; /* 0: the place is free */
    int      known;   /* as ebpfMonFindReceived returned it */
    ebpfMonReceived received;
} realCircuit;

struct ebpfMonRealCircuits {
    ebpfMonFindReceived find;
    void       *arg;
    realCircuit place[PLACES];
};

ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find, void *arg)
{
    ebpfMonRealCircuits *real = calloc(1, sizeof(*real));

    if (real) {
        real->find = find;
        real->arg = arg;
    }
    return real;
}

void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real)
{
    free(real);
}

static realCircuit *askKernel(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                         const struct ebpfMonFirst *first, pid_t pid)
{
    realCircuit *c = &real->place[circuit % PLACES];
    realCircuit found = { .circuit = circuit };

    found.known = real->find ? real->find(real->arg, peer, first, pid, &found.received) : -1;
    if (c->circuit == circuit && c->known > 0 && found.known <= 0)
        c->received.isAll = 1; /* it has ended, and how much came is not known any more */
    else
        *c = found;
    return c;
}

void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid)
{
    if (circuit && pid && real->place[circuit % PLACES].circuit != circuit)
        askKernel(real, circuit, peer, first, pid);
}

/* Nonzero: all of the put was received. Without its first sequence number the kernel's count of bytes tells nothing. */
static int coversPut(const realCircuit *c, const ebpfMonPacketPut *put)
{
    const ebpfMonReceived *r = &c->received;

    if (c->known <= 0)
        return c->known < 0;
    if (r->isAll)
        return 1;
    if (r->endedAt && put->at > r->endedAt + CLOCKS_NS)
        return 0;
    return !r->hasFrom || put->end - r->from <= r->upTo - r->from;
}

int ebpfMonRealCircuitsHas(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put)
{
    const realCircuit *c = &real->place[put->circuit % PLACES];

    if (!put->circuit || !put->pid || (c->circuit == put->circuit && coversPut(c, put)))
        return 1;
    if (c->circuit == put->circuit && !c->known)
        return 0;
    return coversPut(askKernel(real, put->circuit, &put->peer, &put->first, put->pid), put);
}
