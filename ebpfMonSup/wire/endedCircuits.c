/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/hash.h"
#include "wire/endedCircuits.h"

#define PLACES  1024           /* places by hash of the key: a later connection may replace an earlier one */
#define COPY_NS 1000000000ull
#define LATELY  (1 << 20)      /* bytes before its end that we take for the connection's, if its begin was not seen */

struct ebpfMonEndedCircuits {
    ebpfMonCircuitKey key;
    uint64_t time;             /* 0: the place is free */
    int      known[2], syn[2];
    uint32_t first[2], end[2]; /* TCP sequence numbers, by side */
};

ebpfMonEndedCircuits *ebpfMonEndedCircuitsNew(void)
{
    return calloc(PLACES, sizeof(ebpfMonEndedCircuits));
}

static unsigned getPlace(const ebpfMonCircuitKey *k)
{
    uint64_t addresses = (uint64_t)k->addr[0] << 32 | k->addr[1], ports = (uint32_t)k->port[0] << 16 | k->port[1];

    return (unsigned)(ebpfMonHashInteger(ebpfMonHashInteger(addresses) ^ ports) >> 32) % PLACES;
}

void ebpfMonEndedCircuitsAdd(ebpfMonEndedCircuits *ended, const ebpfMonCircuit *c, uint64_t time)
{
    ebpfMonEndedCircuits *e = &ended[getPlace(&c->key)];

    e->key = c->key;
    e->time = time;
    for (int side = 0; side < 2; side++) {
        const ebpfMonStream *s = &c->stream[side];

        e->known[side] = s->started;
        e->syn[side] = s->syn;
        e->first[side] = s->syn ? s->isn : s->next - LATELY;
        e->end[side] = s->next + 1; /* the FIN has a sequence number, too */
    }
}

int ebpfMonEndedCircuitsHas(const ebpfMonEndedCircuits *ended, const ebpfMonCircuitKey *key, int side,
    const ebpfMonSegment *s, uint64_t time)
{
    const ebpfMonEndedCircuits *e = &ended[getPlace(key)];

    if (!e->time || time > e->time + COPY_NS || !e->known[side] || !ebpfMonCircuitSameKey(&e->key, key))
        return 0;
    if (s->flags & EBPFMON_TCP_SYN)
        return e->syn[side] && s->seq == e->first[side];
    return (int32_t)(s->seq - e->first[side]) >= 0 && (int32_t)(e->end[side] - s->seq) >= 0;
}
