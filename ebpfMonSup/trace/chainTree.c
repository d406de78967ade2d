/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/chainTree.h"

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
