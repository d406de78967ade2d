/* SPDX-License-Identifier: BSD-3-Clause */
/* The input is a graph of links, of which closures and stretches are made: two bytes for the number of records, then 9
 * bytes for each group of links: first source, first target, their number, and the distances of sources and of targets
 * (p[6], p[7] of readGraph). */
#include "fuzz.h"
#include "ioc/closure.h"

#define RECORDS 5000
#define LINKS   50000
#define SMALL   64     /* a graph of so few records is compared with a simple search */
#define LONGEST 16

double ebpfMonFuzzSeconds = 2; /* for 25 million steps, which are ten times slower with sanitizers */

typedef struct {
    uint32_t n, edges;
    uint32_t from[LINKS], to[LINKS];         /* in the order of the input */
    uint32_t start[RECORDS + 1], sorted[LINKS], fwd[RECORDS];
} graph;

static graph g;

static uint32_t get16(const uint8_t *p)
{
    return (uint32_t)(p[0] << 8 | p[1]);
}

static void readGraph(const uint8_t *data, size_t size)
{
    uint32_t next[RECORDS] = { 0 };

    g.n = 1 + get16(data) % RECORDS;
    g.edges = 0;
    for (size_t at = 2; at + 9 <= size; at += 9) {
        const uint8_t *p = data + at;
        uint32_t from = get16(p), to = get16(p + 2), count = 1 + get16(p + 4) % 1024;

        for (uint32_t i = 0; i < count && g.edges < LINKS; i++) {
            g.from[g.edges] = (from + i * p[6]) % g.n;
            g.to[g.edges++] = (to + i * (uint32_t)(int8_t)p[7]) % g.n;
        }
    }
    memset(g.start, 0, sizeof(g.start));
    for (uint32_t e = 0; e < g.edges; e++)
        g.start[g.from[e] + 1]++;
    for (uint32_t i = 0; i < g.n; i++)
        g.start[i + 1] += g.start[i];
    for (uint32_t e = 0; e < g.edges; e++)
        g.sorted[g.start[g.from[e]] + next[g.from[e]]++] = g.to[e];
    for (uint32_t i = 0; i < g.n; i++)
        g.fwd[i] = next[i] ? g.sorted[g.start[i] + next[i] - 1] : EBPFMON_NO_RECORD;
}

/* Checks that the closure has all records that the links reach, and no others. */
static void compare(const ebpfMonClosures *c, uint32_t v)
{
    uint64_t reached = 1ull << v, had = 0, listed = 0;

    while (reached != had) {
        had = reached;
        for (uint32_t i = 0; i < g.n; i++)
            for (uint32_t e = g.start[i]; (had >> i & 1) && e < g.start[i + 1]; e++)
                reached |= 1ull << g.sorted[e];
    }
    for (uint32_t k = 0; k < c->len[v]; k++)
        listed |= 1ull << c->list[c->first[v] + k];
    FUZZ_CHECK(c->flags[v] & EBPFMON_NODE_PARTIAL ? !(listed & ~reached) : listed == reached);
}

void ebpfMonFuzzOne(const uint8_t *data, size_t size)
{
    static uint8_t skip[RECORDS];
    ebpfMonStretches *s;
    ebpfMonClosures *c;

    if (size < 2)
        return;
    readGraph(data, size);
    c = ebpfMonClosuresMake(g.n, g.start, g.sorted, 4 * g.n + 1024, 16384); /* as in watch/closureTable.c */
    FUZZ_CHECK(c && c->count <= 4 * g.n + 1024);
    for (uint32_t v = 0; v < g.n; v++) {
        FUZZ_CHECK(c->len[v] > 0 && c->first[v] <= c->count && c->len[v] <= c->count - c->first[v]);
        FUZZ_CHECK(c->list[c->first[v]] == v && c->list[v] < g.n);
        if (g.n <= SMALL)
            compare(c, v);
        skip[v] = c->flags[v];
    }
    s = ebpfMonStretchesMake(g.n, c->list, g.start, g.sorted, g.fwd, skip, LONGEST);
    FUZZ_CHECK(s);
    for (uint32_t v = 0; v < g.n; v++)
        FUZZ_CHECK(s->ahead[v] <= LONGEST && s->place[v] + s->ahead[v] < g.n &&
                   (ebpfMonStretchBefore(s, v) == EBPFMON_NO_RECORD || ebpfMonStretchBefore(s, v) < g.n));
    ebpfMonStretchesFree(s);
    ebpfMonClosuresFree(c);
}
