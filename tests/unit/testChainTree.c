/* SPDX-License-Identifier: BSD-3-Clause */
/* Which record made which process: known trees are found again from times and links. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "trace/traceWalk.h"

#define N 300

static uint32_t seed = 12345;

static uint32_t dice(uint32_t sides)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % sides;
}

static void knownForms(void)
{
    ebpfMonTreeNode n[4] = {{.time = 0}, {.time = 10}, {.time = 20}, {.time = 30}};
    ebpfMonTreeEdge chain[] = {{0, 1, 7, 0}, {1, 2, 8, 0}, {2, 3, 9, 0}};
    ebpfMonTreeEdge pull[] = {{2, 0, 1, 1}, {2, 1, 2, 1}, {2, 3, 3, 0}}; /* 2 is the root: it reads 0 and 1 first */
    ebpfMonTreeEdge diamond[] = {{0, 1, 1, 0}, {0, 2, 2, 0}, {1, 3, 3, 0}, {2, 3, 4, 0}};
    ebpfMonTreeEdge mutual[] = {{0, 1, 1, 0}, {1, 2, 2, 0}, {2, 1, 3, 1}, {2, 3, 4, 0}, {3, 2, 5, 1}};
    ebpfMonTreeEdge late[] = {{3, 1, 1, 0}};
    uint32_t order[4];

    testOk1(ebpfMonTreeMake(n, 4, 0, chain, 3, order) == 0);
    testOk(n[0].parent == EBPFMON_NO_PARENT && n[1].parent == 0 && n[2].parent == 1 && n[3].parent == 2,
           "a chain of four records is found");
    testOk(n[3].depth == 3 && n[3].via == 9 && order[0] == 0 && order[3] == 3,
           "depth, link and order of its records are right");
    ebpfMonTreeMake(n, 4, 2, pull, 3, order);
    testOk(n[0].parent == 2 && n[1].parent == 2 && n[3].parent == 2 && n[2].parent == EBPFMON_NO_PARENT,
           "records that the root processes by input links are below the root");
    testOk(order[0] == 2 && order[1] == 0 && order[2] == 1 && order[3] == 3,
           "... and are listed after it, in their order");
    ebpfMonTreeMake(n, 4, 0, diamond, 4, order);
    testOk(n[3].parent == 2 && n[3].via == 4, "if two links lead to a record, the later one processed it");
    ebpfMonTreeMake(n, 4, 0, mutual, 5, order);
    testOk(n[1].parent != EBPFMON_NO_PARENT && n[2].parent != EBPFMON_NO_PARENT && order[0] == 0,
           "records that link to each other do not become their own parents");
    ebpfMonTreeMake(n, 4, 0, late, 1, order);
    testOk(n[1].parent == EBPFMON_NO_PARENT && n[1].depth == 1, "a link cannot act before its record was stamped");
    ebpfMonTreeMake(n, 1, 0, NULL, 0, order);
    testOk(order[0] == 0 && n[0].depth == 0, "a root without other records");
}

/* A random tree, numbered in the order of time, with more links that made nothing process. */
static int randomTree(void)
{
    static ebpfMonTreeNode n[N];
    static ebpfMonTreeEdge e[2 * N];
    static uint32_t parent[N], order[N];
    static int seen[N];
    uint32_t edges = 0;

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < N; i++)
        n[i].time = 10 * i;
    for (uint32_t i = 1; i < N; i++) {
        parent[i] = i - 1 - dice(i < 5 ? i : 5);
        e[edges++] = (ebpfMonTreeEdge){parent[i], i, i, 0};
        if (parent[i] > 0 && dice(3) == 0) /* an earlier record with a link to it that is, for example, not PP any
                                            * more */
            e[edges++] = (ebpfMonTreeEdge){dice(parent[i]), i, 0, 0};
    }
    ebpfMonTreeMake(n, N, 0, e, edges, order);
    for (uint32_t i = 1; i < N; i++)
        if (n[i].parent != parent[i] || n[i].via != i || n[i].depth != n[n[i].parent].depth + 1)
            return 0;
    for (uint32_t i = 0; i < N; i++) {
        if (order[i] >= N || seen[order[i]] || (i && !seen[n[order[i]].parent]))
            return 0; /* each once, after its parent */
        seen[order[i]] = 1;
    }
    return 1;
}

/* Random links: the result has no circle, and each record once. */
static int anything(void)
{
    static ebpfMonTreeNode n[N];
    static ebpfMonTreeEdge e[4 * N];
    static uint32_t order[N];
    static int seen[N];

    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < N; i++)
        n[i].time = dice(3) ? 10 * i : 10 * (i - i % 2);
    for (uint32_t k = 0; k < 4 * N; k++)
        e[k] = (ebpfMonTreeEdge){dice(N + 2), dice(N + 2), k, dice(3)};
    ebpfMonTreeMake(n, N, dice(N), e, 4 * N, order);
    for (uint32_t i = 0; i < N; i++) {
        uint32_t steps = 0;

        if (order[i] >= N || seen[order[i]]++)
            return 0;
        for (uint32_t at = i; at != EBPFMON_NO_PARENT; at = n[at].parent)
            if (steps++ > N)
                return 0;
    }
    return 1;
}

MAIN(testChainTree)
{
    int trees = 0, others = 0;

    testPlan(11);
    knownForms();
    for (int i = 0; i < 200; i++) {
        trees += randomTree();
        others += anything();
    }
    testOk(trees == 200, "random trees found again: %d of 200", trees);
    testOk(others == 200, "random links: no circle, every record once: %d of 200", others);
    return testDone();
}
