/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/chainTree.h"

/* Whether "above" is "node" or one of those that made it process. */
static int leadsTo(const ebpfMonTreeNode *node, uint32_t above, uint32_t from)
{
    while (from != EBPFMON_NO_PARENT && from != above)
        from = node[from].parent;
    return from == above;
}

static int64_t distance(const ebpfMonTreeNode *node, const ebpfMonTreeEdge *e)
{
    int64_t later = node[e->to].time - node[e->from].time;

    return e->when == ebpfMonTreeAfter || (e->when == ebpfMonTreeEither && later >= 0) ? later : -later;
}

int ebpfMonTree(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge, uint32_t edges,
                uint32_t *order)
{
    uint32_t *first = malloc((nodes + 1) * sizeof(*first)), *next = malloc((nodes + 1) * sizeof(*next));
    int64_t *best = malloc((nodes + 1) * sizeof(*best));
    uint32_t n = 0;

    if (!first || !next || !best) {
        free(first);
        free(next);
        free(best);
        return -1;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        node[i].parent = first[i] = next[i] = EBPFMON_NO_PARENT;
        node[i].depth = 0;
        node[i].via = 0;
        best[i] = INT64_MAX;
    }
    for (uint32_t k = 0; k < edges; k++) {
        const ebpfMonTreeEdge *e = &edge[k];
        int64_t away;

        if (e->from >= nodes || e->to >= nodes || e->from == e->to || e->to == root)
            continue;
        away = distance(node, e);
        /* two records can be links of each other: none is its own grandparent */
        if (away < 0 || away >= best[e->to] || leadsTo(node, e->to, e->from))
            continue;
        best[e->to] = away;
        node[e->to].parent = e->from;
        node[e->to].via = e->via;
    }
    /* Children in the order of time: from the last one on, each goes in front of the others. */
    for (uint32_t i = nodes; i-- > 0; )
        if (node[i].parent != EBPFMON_NO_PARENT) {
            next[i] = first[node[i].parent];
            first[node[i].parent] = i;
        }
    /* The root's tree, then those whose origin is not known. */
    for (uint32_t k = 0; k <= nodes; k++) {
        uint32_t top = k ? k - 1 : root, at = top;

        if (top >= nodes || (k && top == root) || node[top].parent != EBPFMON_NO_PARENT)
            continue;
        node[top].depth = k ? 1 : 0;
        order[n++] = at;
        for (;;) {
            if (first[at] != EBPFMON_NO_PARENT) {
                uint32_t child = first[at];

                node[child].depth = node[at].depth + 1;
                at = child;
            } else {
                while (at != top && next[at] == EBPFMON_NO_PARENT)
                    at = node[at].parent;
                if (at == top)
                    break;
                node[next[at]].depth = node[at].depth;
                at = next[at];
            }
            order[n++] = at;
        }
    }
    free(first);
    free(next);
    free(best);
    return 0;
}
