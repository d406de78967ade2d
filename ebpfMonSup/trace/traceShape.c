/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "trace/stamp.h"
#include "trace/traceShape.h"

#define EDGES  (4 * EBPFMON_TRACE_SHAPE_NODES)
#define PLACES 4096 /* a power of two, about twice the nodes */

struct ebpfMonTraceShaper {
    struct { uint32_t index, node; } place[PLACES]; /* records by index, open addressing; node + 1, 0: free */
    ebpfMonTreeEdge edge[EDGES];
};

ebpfMonTraceShaper *ebpfMonTraceShaperNew(void)
{
    return calloc(1, sizeof(ebpfMonTraceShaper));
}

void ebpfMonTraceShaperFree(ebpfMonTraceShaper *x)
{
    free(x);
}

static int getEdgeOrder(const ebpfMonField *link)
{
    return link->type == ebpfMonDbfInlink ? ebpfMonTreeBefore :
           strcmp(link->name, "FLNK") == 0 ? ebpfMonTreeAfter : ebpfMonTreeEither;
}

/* Where the record is, or would be put. */
static uint32_t findPlace(const ebpfMonTraceShaper *x, uint32_t index)
{
    uint32_t at = index * 2654435761u % PLACES;

    while (x->place[at].node && x->place[at].index != index)
        at = (at + 1) % PLACES;
    return at;
}

/* Does nothing if the record is there already. */
static void addNode(ebpfMonTraceShaper *x, ebpfMonTraceShape *s, uint32_t index, const struct ebpfMonChainRec *rec,
                    int64_t time)
{
    uint32_t at = findPlace(x, index);

    if (x->place[at].node || s->nodes == EBPFMON_TRACE_SHAPE_NODES)
        return;
    x->place[at].index = index;
    x->place[at].node = s->nodes + 1;
    s->record[s->nodes] = index;
    s->rec[s->nodes] = rec;
    s->node[s->nodes++].time = time;
}

/* The links between the records. While a record is still processing, its time stamp does not tell when it began, so
 * it may have begun before or after its neighbours. Returns the number of links. */
static uint32_t addEdges(ebpfMonTraceShaper *x, const ebpfMonCatalogue *cat, const ebpfMonTraceShape *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->nodes; i++) {
        const ebpfMonRecord *rec = &cat->rec[s->record[i]];

        for (uint32_t k = 0; k < rec->toCount && n < EDGES; k++) {
            uint32_t at = findPlace(x, rec->to[k]), field = rec->to[rec->toCount + k], to = x->place[at].node - 1;

            if (x->place[at].node)
                x->edge[n++] = (ebpfMonTreeEdge){
                    .from = i, .to = to, .via = field,
                    .when = s->rec[i] && s->rec[to] ? getEdgeOrder(&cat->field[field]) : ebpfMonTreeEither,
                };
        }
    }
    return n;
}

int ebpfMonTraceShaperMake(ebpfMonTraceShaper *x, const ebpfMonCatalogue *cat, const ebpfMonTraceChain *c,
                           ebpfMonTraceShape *s)
{
    int64_t end = c->count ? ebpfMonStampToUnix(c->rec[c->count - 1].time) : 0;
    uint32_t root;

    memset(x->place, 0, sizeof(x->place));
    s->nodes = 0;
    for (uint32_t i = 0; i < c->count; i++)
        addNode(x, s, c->rec[i].slot, &c->rec[i], ebpfMonStampToUnix(c->rec[i].time));
    addNode(x, s, c->chain.rootSlot, NULL, end);
    for (unsigned i = 0; i < EBPFMON_ASYNC; i++)
        if (c->chain.async[i])
            addNode(x, s, c->chain.async[i] - 1, NULL, end);
    root = x->place[findPlace(x, c->chain.rootSlot)].node - 1;
    return ebpfMonTreeMake(s->node, s->nodes, root, x->edge, addEdges(x, cat, s), s->order);
}
