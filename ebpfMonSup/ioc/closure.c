/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "ioc/closure.h"

/* --- closures --- */

/* How far back two ways to one record are traced before it is assumed that they have a beginning in
 * common. Wrongly assumed, it costs a trap, never a count. */
#define BACK_MAX 2000
/* Links that all searches together follow, some 0.3 s. Real databases need a fraction; with 2 million records an IOC
 * can make it a minute. What comes after is assumed as above. */
#define STEPS_MAX 100000000u

typedef struct {
    uint32_t n, maxList, maxLen;
    size_t    listRoom;
    const uint32_t *start, *to;
    uint32_t *backStart, *back;    /* the edges the other way round */
    uint32_t *edge, *stack;        /* of walkFrom */
    uint32_t *low, *high;          /* by record: the first and the last place to which its subtree leads */
    uint32_t *place;               /* by record: its place in the order */
    uint32_t *end;                 /* by record: the place after its subtree */
    uint32_t *mark;                /* by record: last search that visited it */
    uint32_t *queue;
    uint32_t  search;
    uint32_t  steps;               /* links that makeOwnList and hasCommonAncestor followed */
    ebpfMonClosures *c;
} maker;

static void reverseEdges(maker *m)
{
    for (uint32_t e = 0; e < m->start[m->n]; e++)
        m->backStart[m->to[e] + 2]++;
    for (uint32_t i = 2; i < m->n + 2; i++)
        m->backStart[i] += m->backStart[i - 1];
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t e = m->start[i]; e < m->start[i + 1]; e++)
            m->back[m->backStart[m->to[e] + 1]++] = i;
}

/* Depth first from one record, without recursion: a chain can be as long as the database. */
static void walkFrom(maker *m, uint32_t root, uint32_t *next)
{
    uint32_t depth = 0, *edge = m->edge, *stack = m->stack;

    stack[depth++] = root;
    m->place[root] = *next;
    m->c->list[(*next)++] = root;
    edge[root] = m->start[root];
    while (depth) {
        uint32_t v = stack[depth - 1];

        if (edge[v] < m->start[v + 1]) {
            uint32_t w = m->to[edge[v]++];

            if (m->place[w] == UINT32_MAX) {
                m->place[w] = *next;
                m->c->list[(*next)++] = w;
                edge[w] = m->start[w];
                stack[depth++] = w;
            }
        } else {
            m->end[v] = *next;
            depth--;
        }
    }
}

static void orderRecords(maker *m)
{
    uint32_t next = 0;

    memset(m->place, 0xff, m->n * sizeof(*m->place));
    for (uint32_t i = 0; i < m->n; i++)
        if (m->backStart[i] == m->backStart[i + 1])
            walkFrom(m, i, &next);
    for (uint32_t i = 0; i < m->n; i++) /* what only cycles reach */
        if (m->place[i] == UINT32_MAX)
            walkFrom(m, i, &next);
    m->c->count = next;
}

/* A closure that is not one range of the order: breadth first, into a list of its own. */
static int makeOwnList(maker *m, uint32_t v)
{
    ebpfMonClosures *c = m->c;
    uint32_t at = c->count, n = 0;

    m->search++;
    m->queue[n++] = v;
    m->mark[v] = m->search;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = m->start[m->queue[i]]; e < m->start[m->queue[i] + 1]; e++) {
            uint32_t w = m->to[e];

            if (m->steps < STEPS_MAX && m->mark[w] == m->search) {
                m->steps++;
                continue;
            }
            if (m->steps >= STEPS_MAX || n >= m->maxLen || at + n >= m->maxList) {
                c->flags[v] |= EBPFMON_NODE_PARTIAL;
                goto full;
            }
            m->mark[w] = m->search;
            m->queue[n++] = w;
        }
full:
    if (at + n > m->maxList) { /* not even that: its run is part of the truth */
        c->flags[v] |= EBPFMON_NODE_PARTIAL;
        return 0;
    }
    if (ebpfMonArrayGrow(&c->list, &m->listRoom, (size_t)at + n, m->n + 1u, sizeof(*c->list)))
        return -1;
    memcpy(c->list + at, m->queue, n * sizeof(*m->queue));
    c->count += n;
    c->first[v] = at;
    c->len[v] = n;
    return 0;
}

/* Two edges into a record whose sources have an ancestor in common, or are one record. Backwards from one
 * source after the other, never through "v" itself: while v processes, PACT keeps it from doing so again.
 * What one search visited another must not meet. */
static int hasCommonAncestor(maker *m, uint32_t v)
{
    uint32_t lo = m->backStart[v], hi = m->backStart[v + 1], round = m->search + 1;

    if (hi - lo < 2)
        return 0;
    if (hi - lo > 64)
        return 1;
    for (uint32_t a = lo; a < hi; a++) {
        uint32_t n = 0, id = ++m->search, from = m->back[a];

        if (from == v)
            continue;
        if (m->mark[from] >= round)
            return 1;
        m->queue[n++] = from;
        m->mark[from] = id;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t u = m->queue[i];

            for (uint32_t e = m->backStart[u]; e < m->backStart[u + 1]; e++) {
                uint32_t w = m->back[e];

                if (m->steps >= STEPS_MAX)
                    return 1;
                m->steps++;
                if (w == v || m->mark[w] == id)
                    continue;
                if (m->mark[w] >= round || n >= BACK_MAX)
                    return 1;
                m->mark[w] = id;
                m->queue[n++] = w;
            }
        }
    }
    return 0;
}

/* If a record processes twice, all records that it reaches process twice. */
static void flagTwice(maker *m, uint32_t v)
{
    ebpfMonClosures *c = m->c;
    uint32_t n = 0;

    if (c->flags[v] & EBPFMON_NODE_TWICE)
        return;
    c->flags[v] |= EBPFMON_NODE_TWICE;
    m->queue[n++] = v;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t e = m->start[m->queue[i]]; e < m->start[m->queue[i] + 1]; e++) {
            uint32_t w = m->to[e];

            if (!(c->flags[w] & EBPFMON_NODE_TWICE)) {
                c->flags[w] |= EBPFMON_NODE_TWICE;
                m->queue[n++] = w;
            }
        }
}

static int fillClosures(maker *m)
{
    ebpfMonClosures *c = m->c;
    uint32_t *low = m->low, *high = m->high;

    /* From the end of the order: children come after their parent. A subtree from which no edge leaves
     * its own run is its root's closure. */
    for (uint32_t p = m->n; p-- > 0;) {
        uint32_t v = c->list[p];

        low[v] = high[v] = p;
        for (uint32_t e = m->start[v]; e < m->start[v + 1]; e++) {
            uint32_t w = m->to[e], q = m->place[w];

            if (q < low[v]) low[v] = q;
            if (q > high[v]) high[v] = q;
            if (q > p && q < m->end[v]) { /* below v in the tree, so complete */
                if (low[w] < low[v]) low[v] = low[w];
                if (high[w] > high[v]) high[v] = high[w];
            }
        }
        c->first[v] = p;
        c->len[v] = m->end[v] - p;
        if (c->len[v] > m->maxLen) {
            c->len[v] = m->maxLen;
            c->flags[v] |= EBPFMON_NODE_PARTIAL;
        }
    }
    for (uint32_t v = 0; v < m->n; v++)
        if ((low[v] < m->place[v] || high[v] >= m->end[v]) && makeOwnList(m, v))
            return -1;
    /* What is below a closure that was cut may be missing from it. */
    for (uint32_t v = 0; v < m->n; v++)
        if (c->flags[v] & EBPFMON_NODE_PARTIAL)
            for (uint32_t e = m->start[v]; e < m->start[v + 1]; e++)
                flagTwice(m, m->to[e]);
    /* In their order, so that the first join of a chain spares the search at those below it. */
    for (uint32_t p = 0; p < m->n; p++)
        if (!(c->flags[c->list[p]] & EBPFMON_NODE_TWICE) && hasCommonAncestor(m, c->list[p]))
            flagTwice(m, c->list[p]);
    for (uint32_t v = 0; v < m->n; v++) {
        c->twice += !!(c->flags[v] & EBPFMON_NODE_TWICE);
        c->partial += !!(c->flags[v] & EBPFMON_NODE_PARTIAL);
    }
    return 0;
}

ebpfMonClosures *ebpfMonClosuresMake(uint32_t n, const uint32_t *start, const uint32_t *to,
                                     uint32_t maxList, uint32_t maxLen)
{
    maker m = { .n = n, .start = start, .to = to, .maxList = maxList, .maxLen = maxLen, .listRoom = (size_t)n + 1 };
    ebpfMonClosures *c = calloc(1, sizeof(*c));
    const ebpfMonArrayPart own[] = {
        EBPFMON_PART(m.backStart), EBPFMON_PART(m.place), EBPFMON_PART(m.end), EBPFMON_PART(m.mark),
        EBPFMON_PART(m.edge), EBPFMON_PART(m.stack), EBPFMON_PART(m.low), EBPFMON_PART(m.high),
    };
    void *arrays = ebpfMonArraysMake((size_t)n + 2, own, sizeof(own) / sizeof(own[0]));
    int made = 0;

    m.back = malloc(((size_t)start[n] + 1) * sizeof(*m.back));
    m.queue = malloc(((size_t)n + BACK_MAX + 1) * sizeof(*m.queue));
    if (c && arrays && m.back && m.queue) {
        const ebpfMonArrayPart parts[] = { EBPFMON_PART(c->first), EBPFMON_PART(c->len), EBPFMON_PART(c->flags) };

        m.c = c;
        c->list = malloc(((size_t)n + 1) * sizeof(*c->list));
        c->arrays = ebpfMonArraysMake((size_t)n + 1, parts, sizeof(parts) / sizeof(parts[0]));
        if (c->list && c->arrays) {
            reverseEdges(&m);
            orderRecords(&m);
            made = fillClosures(&m) == 0;
        }
    }
    free(arrays);
    free(m.back);
    free(m.queue);
    if (made)
        return c;
    ebpfMonClosuresFree(c);
    return NULL;
}

void ebpfMonClosuresFree(ebpfMonClosures *c)
{
    if (!c)
        return;
    free(c->list);
    free(c->ahead);
    free(c->arrays);
    free(c);
}

/* --- stretches --- */

ebpfMonStretches *ebpfMonStretchesMake(uint32_t n, const uint32_t *order, const uint32_t *start,
                                       const uint32_t *to, const uint32_t *fwd, const uint8_t *skip,
                                       unsigned max)
{
    ebpfMonStretches *s = calloc(1, sizeof(*s));
    uint32_t *causes = calloc((size_t)n + 1, sizeof(*causes)); /* how many links process a record */

    if (s && causes) {
        const ebpfMonArrayPart parts[] = { EBPFMON_PART(s->order), EBPFMON_PART(s->place), EBPFMON_PART(s->ahead) };

        s->arrays = ebpfMonArraysMake((size_t)n + 1, parts, sizeof(parts) / sizeof(parts[0]));
    }
    if (!s || !s->arrays) {
        free(causes);
        free(s);
        return NULL;
    }
    s->n = n;
    for (uint32_t p = 0; p < n; p++) {
        s->order[p] = order[p];
        s->place[order[p]] = p;
    }
    for (uint32_t e = 0; e < start[n]; e++)
        causes[to[e]]++;
    /* from the end, so that what comes after is known */
    for (uint32_t p = n; p-- > 0;) {
        uint32_t v = order[p], w = fwd[v];

        if (w == EBPFMON_NO_RECORD || p + 1 >= n || order[p + 1] != w || start[v + 1] - start[v] != 1 ||
            causes[w] != 1 || skip[v] || skip[w] || s->ahead[w] >= max)
            continue;
        s->ahead[v] = (uint8_t)(s->ahead[w] + 1);
    }
    free(causes);
    return s;
}

void ebpfMonStretchesFree(ebpfMonStretches *s)
{
    if (!s)
        return;
    free(s->arrays);
    free(s);
}

uint32_t ebpfMonStretchBefore(const ebpfMonStretches *s, uint32_t record)
{
    uint32_t p = s->place[record], before;

    if (p == 0)
        return EBPFMON_NO_RECORD;
    before = s->order[p - 1];
    return s->ahead[before] && s->ahead[before] == s->ahead[record] + 1 ? before : EBPFMON_NO_RECORD;
}
