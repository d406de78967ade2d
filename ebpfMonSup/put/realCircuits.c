/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "put/realCircuits.h"

#define PLACES 1024 /* by the number of the circuit: a later one may replace an earlier one, which is asked for again */

typedef struct {
    uint64_t circuit; /* 0: the place is free */
    int      known;   /* as ebpfMonFindReceived returned it */
    int      isAll;
    uint32_t upTo;
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

    found.known = real->find ? real->find(real->arg, peer, first, pid, &found.upTo, &found.isAll) : -1;
    if (c->circuit == circuit && c->known > 0 && found.known <= 0)
        c->isAll = 1; /* it has ended, and how much came is not known any more */
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
    return c->known < 0 ||
           (c->known && (c->isAll || !(put->first.seq[0] || put->first.seq[1]) || (int32_t)(put->end - c->upTo) <= 0));
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
