/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/traceWalk.h"

/* A chain that hangs below one that is walked. */
typedef struct {
    const ebpfMonTraceChain *chain;
    uint32_t node;   /* below which it hangs; EBPFMON_NO_PARENT: below the chain itself */
    int completes;
} childChain;

/* What the walk through one chain needs; it is large, and few are ever needed at the same time. */
typedef struct {
    ebpfMonWalkChain  at;
    ebpfMonTraceShape shape;
    unsigned   baseDepth; /* of its root */
    unsigned   children;
    childChain child[EBPFMON_TRACE_CHAINS];
} frame;

struct ebpfMonTraceWalk {
    ebpfMonTraceShaper *shaper;
    frame *frame[EBPFMON_TRACE_CHAINS]; /* by level; made when it is needed first */
    /* of the walk under way */
    const ebpfMonCatalogue *cat;
    const ebpfMonTraceVisitor *visitor;
    void *arg;
};

ebpfMonTraceWalk *ebpfMonTraceWalkNew(void)
{
    ebpfMonTraceWalk *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->shaper = ebpfMonTraceShaperNew();
    if (!w->shaper) {
        free(w);
        return NULL;
    }
    return w;
}

void ebpfMonTraceWalkFree(ebpfMonTraceWalk *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS; i++)
        free(w->frame[i]);
    ebpfMonTraceShaperFree(w->shaper);
    free(w);
}

/* EBPFMON_NO_PARENT: the record is none of the chain. */
static uint32_t findNode(const ebpfMonTraceShape *s, uint32_t index)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->record[i] == index)
            return i;
    return EBPFMON_NO_PARENT;
}

/* Chains come after the one that led to them. A chain that was handed over hangs below its own root, if that is a
 * record of the source chain. */
static void findChildren(frame *f)
{
    const ebpfMonTraceShape *s = &f->shape;

    f->children = 0;
    for (const ebpfMonTraceChain *c = f->at.chain->next; c && f->children < EBPFMON_TRACE_CHAINS; c = c->next) {
        int completes = ebpfMonTraceChainCompletes(c, f->at.chain);
        uint32_t node;

        if (!completes && !ebpfMonTraceChainIsHandedOverBy(c, f->at.chain))
            continue;
        node = findNode(s, c->chain.rootSlot);
        if (completes && (node == EBPFMON_NO_PARENT || s->rec[node]))
            continue;
        f->child[f->children++] = (childChain){ .chain = c, .node = node, .completes = completes };
    }
}

/* NULL: no memory. */
static frame *enterFrame(ebpfMonTraceWalk *w, const ebpfMonTraceChain *c, unsigned level)
{
    frame *f;

    if (level >= EBPFMON_TRACE_CHAINS)
        return NULL;
    if (!w->frame[level])
        w->frame[level] = malloc(sizeof(*f));
    f = w->frame[level];
    if (!f || ebpfMonTraceShaperMake(w->shaper, w->cat, c, &f->shape))
        return NULL;
    f->at = (ebpfMonWalkChain){ .chain = c, .shape = &f->shape, .nodeAbove = EBPFMON_NO_PARENT, .level = level };
    f->baseDepth = 0;
    findChildren(f);
    return f;
}

static int walkChain(ebpfMonTraceWalk *w, frame *f);

/* Walks the chains that hang below a record of the chain, or below the chain itself. Nonzero: the walk ends. */
static int walkChildren(ebpfMonTraceWalk *w, const frame *f, uint32_t node, int completes, unsigned depth)
{
    for (unsigned i = 0; i < f->children; i++) {
        const childChain *child = &f->child[i];
        frame *below;

        if (child->node != node || child->completes != completes)
            continue;
        below = enterFrame(w, child->chain, f->at.level + 1);
        if (!below) {
            if (w->visitor->skipChain)
                w->visitor->skipChain(w->arg, child->chain);
            continue;
        }
        below->at.above = &f->at;
        below->at.nodeAbove = node;
        below->at.completes = completes;
        below->baseDepth = depth;
        if (completes && child->chain->chain.flags & EBPFMON_CHAIN_BUSY)
            below->baseDepth--; /* its root still processes, and stands above */
        if (walkChain(w, below))
            return 1;
    }
    return 0;
}

static int visitRecord(ebpfMonTraceWalk *w, const frame *f, uint32_t node)
{
    const ebpfMonTreeNode *n = &f->shape.node[node];
    ebpfMonWalkRecord r = {
        .node = node, .index = f->shape.record[node], .parent = n->parent, .depth = f->baseDepth + n->depth,
        .isRoot = !n->depth, .via = n->parent != EBPFMON_NO_PARENT ? w->cat->field[n->via].name : "",
        .rec = f->shape.rec[node],
    };

    for (unsigned i = 0; !r.rec && i < f->children; i++)
        if (f->child[i].completes && f->child[i].node == node)
            r.completedBy = f->child[i].chain;
    r.isRepeated = f->at.completes && r.isRoot && !r.rec;
    return w->visitor->enterRecord(w->arg, &f->at, &r);
}

/* A hand-over stands below its record, after all records that this record made process. So this visits the hand-overs
 * of "node", and of each record above whose last descendant "node" is. "next": the following node, EBPFMON_NO_PARENT:
 * none. The root is left last, because records without a known parent stand below it. Nonzero: the walk ends. */
static int leaveRecords(ebpfMonTraceWalk *w, const frame *f, uint32_t node, uint32_t next)
{
    const ebpfMonTraceShape *s = &f->shape;
    uint32_t depth = next != EBPFMON_NO_PARENT ? s->node[next].depth : 1;

    for (uint32_t i = node; i != EBPFMON_NO_PARENT && s->node[i].depth && s->node[i].depth >= depth;
         i = s->node[i].parent)
        if (walkChildren(w, f, i, 0, f->baseDepth + s->node[i].depth + 1))
            return 1;
    return 0;
}

static int walkChain(ebpfMonTraceWalk *w, frame *f)
{
    const ebpfMonTraceShape *s = &f->shape;

    if (w->visitor->enterChain && w->visitor->enterChain(w->arg, &f->at))
        return 1;
    for (uint32_t k = 0; k < s->nodes; k++) {
        uint32_t node = s->order[k], next = k + 1 < s->nodes ? s->order[k + 1] : EBPFMON_NO_PARENT;

        if (visitRecord(w, f, node) ||
            walkChildren(w, f, node, 1, f->baseDepth + s->node[node].depth + 1) || leaveRecords(w, f, node, next))
            return 1;
    }
    return walkChildren(w, f, s->order[0], 0, f->baseDepth + 1) ||
           walkChildren(w, f, EBPFMON_NO_PARENT, 0, f->baseDepth + 1);
}

void ebpfMonTraceWalkRun(ebpfMonTraceWalk *w, const ebpfMonTrace *trace, const ebpfMonTraceVisitor *visitor, void *arg)
{
    frame *f;

    w->cat = trace->cat;
    w->visitor = visitor;
    w->arg = arg;
    f = enterFrame(w, trace->first, 0);
    if (f)
        walkChain(w, f);
    else if (visitor->skipChain)
        visitor->skipChain(arg, trace->first);
}
