/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "trace/traceShape.h"

#define EDGES  (4 * EBPFMON_TRACE_SHAPE_NODES)
#define PLACES 4096 /* a power of two, some twice the nodes */

static int whenOf(const ebpfMonField *link)
{
    return link->type == ebpfMonDbfInlink ? ebpfMonTreeBefore :
           strcmp(link->name, "FLNK") == 0 ? ebpfMonTreeAfter : ebpfMonTreeEither;
}

/* Open addressing; node + 1, 0: free. */
static struct { uint32_t index, node; } taken[PLACES];

static uint32_t placeOf(uint32_t index)
{
    uint32_t at = index * 2654435761u % PLACES;

    while (taken[at].node && taken[at].index != index)
        at = (at + 1) % PLACES;
    return at;
}

static void add(ebpfMonTraceShape *s, uint32_t index, const struct ebpfMonChainRec *rec, int64_t time)
{
    uint32_t at = placeOf(index);

    if (taken[at].node || s->nodes == EBPFMON_TRACE_SHAPE_NODES)
        return;
    taken[at].index = index;
    taken[at].node = s->nodes + 1;
    s->record[s->nodes] = index;
    s->rec[s->nodes] = rec;
    s->node[s->nodes++].time = time;
}

/* What processes still has no time stamp yet that tells anything: it may have been begun before or after what stands
 * beside it. */
static uint32_t links(const ebpfMonTarget *t, const ebpfMonTraceShape *s, ebpfMonTreeEdge *edge)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->nodes; i++) {
        const ebpfMonRecord *rec = &t->cat->rec[s->record[i]];

        for (uint32_t k = 0; k < rec->toCount && n < EDGES; k++) {
            uint32_t at = placeOf(rec->to[k]), field = rec->to[rec->toCount + k], to = taken[at].node - 1;

            if (taken[at].node)
                edge[n++] = (ebpfMonTreeEdge){
                    .from = i, .to = to, .via = field,
                    .when = s->rec[i] && s->rec[to] ? whenOf(&t->cat->field[field]) : ebpfMonTreeEither,
                };
        }
    }
    return n;
}

int ebpfMonTraceShapeMake(const ebpfMonTarget *t, const ebpfMonTraceChain *half, ebpfMonTraceShape *s)
{
    static ebpfMonTreeEdge edge[EDGES];
    int64_t end = half->count ? ebpfMonStampNs(half->rec[half->count - 1].time) : 0;
    uint32_t root;

    memset(taken, 0, sizeof(taken));
    s->nodes = 0;
    for (uint32_t i = 0; i < half->count; i++)
        add(s, half->rec[i].slot, &half->rec[i], ebpfMonStampNs(half->rec[i].time));
    add(s, half->chain.rootSlot, NULL, end);
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        if (half->chain.async[i])
            add(s, half->chain.async[i] - 1, NULL, end);
    root = taken[placeOf(half->chain.rootSlot)].node - 1;
    return ebpfMonTree(s->node, s->nodes, root, edge, links(t, s, edge), s->order);
}
