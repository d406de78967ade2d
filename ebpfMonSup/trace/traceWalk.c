/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "trace/trace.h"
#include "trace/traceWalk.h"

/* --- the tree of a chain --- */

/* Whether "above" is "from", or one of those that made "from" process. */
static int isAbove(const ebpfMonTreeNode *node, uint32_t above, uint32_t from)
{
    while (from != EBPFMON_NO_PARENT && from != above)
        from = node[from].parent;
    return from == above;
}

/* ns from the link to its effect; negative: the link cannot have done it. */
static int64_t getDistance(const ebpfMonTreeNode *node, const ebpfMonTreeEdge *e)
{
    int64_t later = node[e->to].time - node[e->from].time;

    return e->when == ebpfMonTreeAfter || (e->when == ebpfMonTreeEither && later >= 0) ? later : -later;
}

/* Numbers that the work on one tree needs, by node. */
typedef struct {
    uint32_t *firstChild, *nextSibling; /* EBPFMON_NO_PARENT: none */
    int64_t  *nearest; /* ns to the parent that was found so far */
} scratch;

static int newScratch(scratch *s, uint32_t nodes)
{
    s->firstChild = malloc((nodes + 1) * sizeof(*s->firstChild));
    s->nextSibling = malloc((nodes + 1) * sizeof(*s->nextSibling));
    s->nearest = malloc((nodes + 1) * sizeof(*s->nearest));
    return s->firstChild && s->nextSibling && s->nearest ? 0 : -1;
}

static void freeScratch(scratch *s)
{
    free(s->firstChild);
    free(s->nextSibling);
    free(s->nearest);
}

static void chooseParents(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge,
                          uint32_t edges, scratch *s)
{
    for (uint32_t i = 0; i < nodes; i++) {
        node[i].parent = EBPFMON_NO_PARENT;
        node[i].depth = 0;
        node[i].via = 0;
        s->nearest[i] = INT64_MAX;
    }
    for (uint32_t k = 0; k < edges; k++) {
        const ebpfMonTreeEdge *e = &edge[k];
        int64_t away;

        if (e->from >= nodes || e->to >= nodes || e->from == e->to || e->to == root)
            continue;
        away = getDistance(node, e);
        /* two records can have links to each other: no record is above itself */
        if (away < 0 || away >= s->nearest[e->to] || isAbove(node, e->to, e->from))
            continue;
        s->nearest[e->to] = away;
        node[e->to].parent = e->from;
        node[e->to].via = e->via;
    }
}

/* In the order of time: from the last one on, each goes in front of the others. */
static void listChildren(const ebpfMonTreeNode *node, uint32_t nodes, scratch *s)
{
    for (uint32_t i = 0; i < nodes; i++)
        s->firstChild[i] = s->nextSibling[i] = EBPFMON_NO_PARENT;
    for (uint32_t i = nodes; i-- > 0; )
        if (node[i].parent != EBPFMON_NO_PARENT) {
            s->nextSibling[i] = s->firstChild[node[i].parent];
            s->firstChild[node[i].parent] = i;
        }
}

/* Writes the tree below "top", which has its depth, to "order", and sets the depths. Returns how many nodes. */
static uint32_t readTree(ebpfMonTreeNode *node, uint32_t top, const scratch *s, uint32_t *order)
{
    uint32_t at = top, n = 0;

    order[n++] = top;
    for (;;) {
        if (s->firstChild[at] != EBPFMON_NO_PARENT) {
            uint32_t child = s->firstChild[at];

            node[child].depth = node[at].depth + 1;
            at = child;
        } else {
            while (at != top && s->nextSibling[at] == EBPFMON_NO_PARENT)
                at = node[at].parent;
            if (at == top)
                return n;
            node[s->nextSibling[at]].depth = node[at].depth;
            at = s->nextSibling[at];
        }
        order[n++] = at;
    }
}

int ebpfMonTreeMake(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge, uint32_t edges,
                    uint32_t *order)
{
    uint32_t n = 0;
    scratch s;

    if (newScratch(&s, nodes)) {
        freeScratch(&s);
        return -1;
    }
    chooseParents(node, nodes, root, edge, edges, &s);
    listChildren(node, nodes, &s);
    if (root < nodes)
        n = readTree(node, root, &s, order);
    for (uint32_t top = 0; top < nodes; top++)
        if (top != root && node[top].parent == EBPFMON_NO_PARENT) { /* it is not known what made it process */
            node[top].depth = 1;
            n += readTree(node, top, &s, order + n);
        }
    freeScratch(&s);
    return 0;
}

/* --- the tree of its records --- */

/* Memory that making a shape needs; one for all shapes. */
#define EDGES  (4 * EBPFMON_TRACE_SHAPE_NODES)
#define PLACES 4096 /* a power of two, about twice the nodes */

typedef struct {
    struct { uint32_t index, node; } place[PLACES]; /* records by index, open addressing; node + 1, 0: free */
    ebpfMonTreeEdge edge[EDGES];
} traceShaper;

static int getEdgeOrder(const ebpfMonField *link)
{
    return link->type == ebpfMonDbfInlink ? ebpfMonTreeBefore :
           strcmp(link->name, "FLNK") == 0 ? ebpfMonTreeAfter : ebpfMonTreeEither;
}

/* Where the record is, or would be put. */
static uint32_t findPlace(const traceShaper *x, uint32_t index)
{
    uint32_t at = index * 2654435761u % PLACES;

    while (x->place[at].node && x->place[at].index != index)
        at = (at + 1) % PLACES;
    return at;
}

/* Does nothing if the record is there already. */
static void addNode(traceShaper *x, ebpfMonTraceShape *s, uint32_t index, const struct ebpfMonChainRec *rec,
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
static uint32_t addEdges(traceShaper *x, const ebpfMonCatalogue *cat, const ebpfMonTraceShape *s)
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

/* "cat": the catalogue that the chain's indexes are of. The shape points into the chain. 0, or -1: no memory. */
static int makeShape(traceShaper *x, const ebpfMonCatalogue *cat, const ebpfMonTraceChain *c,
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

/* --- the walk --- */

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
    traceShaper shaper;
    frame *frame[EBPFMON_TRACE_CHAINS]; /* by level; made when it is needed first */
    /* of the walk under way */
    const ebpfMonCatalogue *cat;
    const ebpfMonTraceVisitor *visitor;
    void *arg;
};

ebpfMonTraceWalk *ebpfMonTraceWalkNew(void)
{
    return calloc(1, sizeof(ebpfMonTraceWalk));
}

void ebpfMonTraceWalkFree(ebpfMonTraceWalk *w)
{
    if (!w)
        return;
    for (unsigned i = 0; i < EBPFMON_TRACE_CHAINS; i++)
        free(w->frame[i]);
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
    if (!f || makeShape(&w->shaper, w->cat, c, &f->shape))
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
