/* SPDX-License-Identifier: BSD-3-Clause */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <epicsTime.h>
#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/closure.h"

/* --- Closure --- */

/* Compares ioc/closure.h with plain searches: the records that a record reaches, and how often a chain processes a
 * record. */

#define NODES   60     /* of a graph that is searched by brute force; each is one bit in a 64-bit word */
#define GRAPHS  1000   /* of each kind */
#define BUDGET  3000   /* processings of one chain that are followed; their number can be exponential */
#define LARGE   100000
#define LIST(n) ((n) * 4 + 1024) /* the room that the monitor gives */
#define LEN     16384            /* EBPFMON_CLOSURE_MAX */

typedef struct {
    uint32_t n, edges;
    uint32_t start[NODES + 1], to[NODES * 8];
    uint64_t reach[NODES]; /* including the record itself */
    uint64_t twice;        /* processed twice by the chain of some root */
    int      all;          /* no chain exceeded the budget: "twice" is complete */
} graph;

static uint64_t seed = 88172645463325252ull; /* fixed, so a failure can be repeated */

static uint32_t random32(uint32_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % below;
}

/* Makes a graph from pairs "from, to" in any order. The links of one record keep their order. */
static void makeGraph(graph *g, uint32_t n, uint32_t edges, const uint32_t (*pair)[2])
{
    memset(g, 0, sizeof(*g));
    g->n = n;
    for (uint32_t v = 0; v < n; v++) {
        g->start[v] = g->edges;
        for (uint32_t e = 0; e < edges; e++)
            if (pair[e][0] == v)
                g->to[g->edges++] = pair[e][1];
    }
    g->start[n] = g->edges;
}

/* Floyd-Warshall. */
static void reach(graph *g)
{
    for (uint32_t v = 0; v < g->n; v++) {
        g->reach[v] = 1ull << v;
        for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++)
            g->reach[v] |= 1ull << g->to[e];
    }
    for (uint32_t k = 0; k < g->n; k++)
        for (uint32_t i = 0; i < g->n; i++)
            if (g->reach[i] >> k & 1)
                g->reach[i] |= g->reach[k];
}

typedef struct {
    const graph *g;
    uint64_t pact, once, twice;
    uint32_t left;
} chain;

/* dbProcess: a record that is being processed is not processed again. */
static void process(chain *c, uint32_t v)
{
    if (c->pact >> v & 1 || c->left == 0)
        return;
    c->left--;
    c->twice |= c->once & 1ull << v;
    c->once |= 1ull << v;
    c->pact |= 1ull << v;
    for (uint32_t e = c->g->start[v]; e < c->g->start[v + 1]; e++)
        process(c, c->g->to[e]);
    c->pact &= ~(1ull << v);
}

static void processAll(graph *g)
{
    g->all = 1;
    for (uint32_t root = 0; root < g->n; root++) {
        chain c = { .g = g, .left = BUDGET };

        process(&c, root);
        g->twice |= c.twice;
        g->all &= c.left > 0;
    }
}

/* Checks all conditions that the closures of a graph must fulfil, with any limits. Prints the first one that fails. */
static int holds(graph *g, const ebpfMonClosures *c, uint32_t maxList, uint32_t maxLen)
{
    uint32_t twice = 0, partial = 0;
    uint64_t flagged = 0, below = 0, needed;
    int ok = 1;

#define MUST(cond, what) do { if (!(cond) && ok--) testDiag("%s: record %u of %u", what, v, g->n); } while (0)
    for (uint32_t v = 0; v < g->n; v++) {
        uint64_t set = 0;

        MUST(c->len[v] >= 1 && c->len[v] <= maxLen, "length");
        MUST((uint64_t)c->first[v] + c->len[v] <= c->count && c->count <= maxList, "room");
        if (!ok)
            return 0;
        for (uint32_t i = c->first[v]; i < c->first[v] + c->len[v]; i++) {
            MUST(c->list[i] < g->n && !(set >> c->list[i] & 1), "an entry twice");
            set |= 1ull << c->list[i];
        }
        MUST(set >> v & 1, "not in its own closure");
        if (c->flags[v] & EBPFMON_NODE_PARTIAL) {
            partial++;
            MUST(!(set & ~g->reach[v]), "more than it reaches");
            for (uint32_t e = g->start[v]; e < g->start[v + 1]; e++)
                below |= g->reach[g->to[e]];
        } else {
            MUST(set == g->reach[v], "not what it reaches");
        }
        if (c->flags[v] & EBPFMON_NODE_TWICE) {
            twice++;
            flagged |= 1ull << v;
        }
    }
    needed = below | g->twice;
    for (uint32_t v = 0; v < g->n; v++) {
        MUST(flagged >> v & 1 || !(g->twice >> v & 1), "processed twice, not flagged");
        MUST(flagged >> v & 1 || !(below >> v & 1), "below a partial closure, not flagged");
        if (g->twice >> v & 1)
            needed |= g->reach[v];
    }
    for (uint32_t v = 0; g->all && v < g->n; v++) /* a needless flag costs a trap at each processing */
        MUST(needed >> v & 1 || !(flagged >> v & 1), "flagged for nothing");
#undef MUST
    return ok && c->twice == twice && c->partial == partial;
}

static int right(graph *g, uint32_t maxList, uint32_t maxLen, ebpfMonClosures **keep)
{
    ebpfMonClosures *c = ebpfMonClosuresMake(g->n, g->start, g->to, maxList, maxLen);
    int ok;

    if (!c)
        return 0;
    ok = holds(g, c, maxList, maxLen);
    if (keep)
        *keep = c;
    else
        ebpfMonClosuresFree(c);
    return ok;
}

/* A graph by hand, and the records that must be flagged, one bit for each. */
static ebpfMonClosures *byHand(const char *what, uint32_t n, uint32_t edges, const uint32_t (*pair)[2],
                               long twice)
{
    static graph g;
    ebpfMonClosures *c = NULL;
    long flags = 0; /* one bit a record */

    makeGraph(&g, n, edges, pair);
    reach(&g);
    processAll(&g);
    testOk(right(&g, LIST(n), LEN, &c), "%s: closures", what);
    if (!c)
        testAbort("no closures");
    for (uint32_t v = 0; v < n; v++)
        flags |= (long)(c->flags[v] & EBPFMON_NODE_TWICE) << v;
    testOk(flags == twice && c->partial == 0, "%s: flagged 0x%lx, expected 0x%lx", what, flags, twice);
    return c;
}

#define HAND(what, n, twice, ...) do { \
        static const uint32_t pair[][2] = { __VA_ARGS__ }; \
        ebpfMonClosuresFree(byHand(what, n, sizeof(pair) / sizeof(pair[0]), pair, twice)); \
    } while (0)

static void testByHand(void)
{
    static const uint32_t run[][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 4 } };
    ebpfMonClosures *c = byHand("single", 1, 0, run, 0);
    int ok = 1;

    testOk(c->count == 1 && c->len[0] == 1, "single: the closure is the record itself");
    ebpfMonClosuresFree(c);
    c = byHand("chain of 5", 5, 4, run, 0);
    for (uint32_t v = 0; v < 5; v++)
        ok &= c->first[v] == v && c->len[v] == 5 - v && c->list[v] == v;
    testOk(ok && c->count == 5, "chain of 5: each closure is the rest of the one run");
    ebpfMonClosuresFree(c);

    HAND("tree", 7, 0, { 0, 1 }, { 0, 2 }, { 1, 3 }, { 1, 4 }, { 2, 5 }, { 2, 6 });
    HAND("diamond, and what follows", 6, 0x38, { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 }, { 3, 4 }, { 4, 5 });
    HAND("two roots of one record", 4, 0, { 0, 2 }, { 1, 2 }, { 2, 3 });
    HAND("cycle of two", 2, 0, { 0, 1 }, { 1, 0 });
    HAND("self loop", 1, 0, { 0, 0 });
    HAND("self loop below a record", 2, 0, { 0, 1 }, { 1, 1 });
    HAND("two links to one record", 3, 0x6, { 0, 1 }, { 0, 1 }, { 1, 2 });
    HAND("into a cycle from outside", 4, 0, { 3, 0 }, { 0, 1 }, { 1, 2 }, { 2, 0 });
    HAND("into a cycle at two places", 4, 0x7, { 3, 0 }, { 3, 1 }, { 0, 1 }, { 1, 2 }, { 2, 0 });
    HAND("a shortcut in a cycle", 3, 0x7, { 0, 1 }, { 1, 2 }, { 0, 2 }, { 2, 0 });
}

static void testNothing(void)
{
    uint32_t start[1] = { 0 };
    ebpfMonClosures *c = ebpfMonClosuresMake(0, start, start, 1024, LEN);

    testOk(c && c->count == 0, "a database without records");
    ebpfMonClosuresFree(c);
}

/* Graphs with few to many edges. "dag": edges lead only to later numbers; then the numbers are shuffled. */
static void randomGraph(graph *g, int dag)
{
    static uint32_t pair[NODES * 8][2];
    uint32_t n = 1 + random32(NODES), name[NODES], edges = random32(n * (random32(4) ? 2 : 8));

    for (uint32_t i = 0; i < n; i++)
        name[i] = i;
    for (uint32_t i = n; i-- > 1;) {
        uint32_t k = random32(i + 1), swap = name[i];

        name[i] = name[k];
        name[k] = swap;
    }
    for (uint32_t e = 0; e < edges; e++) {
        uint32_t a = random32(n), b = random32(n);

        if (dag && a == b && n > 1)
            b = a ? a - 1 : 1;
        pair[e][0] = name[dag && a > b ? b : a];
        pair[e][1] = name[dag && a > b ? a : b];
    }
    if (n == 1 && dag)
        edges = 0;
    makeGraph(g, n, edges, (const uint32_t (*)[2])pair);
    reach(g);
    processAll(g);
}

static void testRandom(int dag)
{
    static graph g;
    uint32_t good = 0, small = 0, complete = 0, flagged = 0;

    for (int i = 0; i < GRAPHS; i++) {
        uint32_t maxList, maxLen;
        ebpfMonClosures *c = NULL;

        randomGraph(&g, dag);
        good += (uint32_t)right(&g, LIST(g.n), LEN, &c);
        complete += (uint32_t)g.all;
        flagged += c && c->twice;
        ebpfMonClosuresFree(c);
        maxList = g.n + random32(g.n * 2);
        maxLen = 1 + random32(random32(2) ? 8 : NODES);
        small += (uint32_t)right(&g, maxList, maxLen, NULL);
    }
    testOk(good == GRAPHS, "%u of %u random %s", good, GRAPHS, dag ? "DAGs" : "graphs");
    testOk(small == GRAPHS, "%u of them were right with small limits", small);
    testOk(flagged > GRAPHS / 10 && complete > GRAPHS / 4, "%u have a record twice, %u were followed to the end",
        flagged, complete);
}

/* A large graph. The function "next" returns its edges: up to two for each record, UINT32_MAX for none. */
static ebpfMonClosures *large(const char *what, uint32_t next(uint32_t v, int which), double *bytes)
{
    uint32_t *start = malloc((LARGE + 1) * sizeof(*start)), *to = malloc(2 * LARGE * sizeof(*to)), edges = 0;
    struct mallinfo2 before, after;
    epicsUInt64 begin;
    ebpfMonClosures *c;
    double took;

    for (uint32_t v = 0; v < LARGE; v++) {
        start[v] = edges;
        for (int k = 0; k < 2; k++)
            if (next(v, k) < LARGE)
                to[edges++] = next(v, k);
    }
    start[LARGE] = edges;
    before = mallinfo2();
    begin = epicsMonotonicGet();
    c = ebpfMonClosuresMake(LARGE, start, to, LIST(LARGE), LEN);
    took = (double)(epicsMonotonicGet() - begin) * 1e-9;
    after = mallinfo2();
    *bytes = (double)(after.uordblks + after.hblkhd) - (double)(before.uordblks + before.hblkhd);
    testDiag("%s: %.1f ms, %.1f bytes a record", what, took * 1e3, *bytes / LARGE);
    /* 2 s is much more than it takes, and much less than an algorithm with the square of the length would take */
    testOk(c && took < 2 && c->count <= LIST(LARGE), "%s of %d records", what, LARGE);
    if (!c)
        testAbort("no closures");
    free(start);
    free(to);
    return c;
}

static uint32_t chainDown(uint32_t v, int which) /* numbered against the direction of its links */
{
    return which || v == 0 ? UINT32_MAX : v - 1;
}

static uint32_t ring(uint32_t v, int which)
{
    return which ? UINT32_MAX : (v + 1) % LARGE;
}

static uint32_t ladder(uint32_t v, int which) /* a diamond of 0, 1, 2 and 3, the next of 3, 4, 5 and 6, … */
{
    return v % 3 == 0 ? v + 1 + (uint32_t)which : which ? UINT32_MAX : v + 3 - v % 3;
}

static uint32_t star(uint32_t v, int which) /* all to record 0 */
{
    return which || v == 0 ? UINT32_MAX : 0;
}

static void testLarge(void)
{
    double bytes;
    ebpfMonClosures *c = large("chain", chainDown, &bytes);
    uint32_t wrong = 0;

    for (uint32_t v = 0; v < LARGE; v++) {
        uint32_t len = v + 1 < LEN ? v + 1 : LEN;

        wrong += c->len[v] != len || c->list[c->first[v]] != v || c->list[c->first[v] + len - 1] != v + 1 - len;
        /* all records below the first one that was cut, which are all except the root */
        wrong += c->flags[v] != (v + 1 > LEN ? EBPFMON_NODE_PARTIAL : 0) + (v + 1 < LARGE ? EBPFMON_NODE_TWICE : 0);
    }
    testOk(!wrong && c->count == LARGE, "chain: all closures share one run, %u wrong", wrong);
    testOk(bytes < 32.0 * LARGE, "chain: memory grows with the records");
    ebpfMonClosuresFree(c);

    c = large("ring", ring, &bytes);
    testOk(c->partial == LARGE && c->twice == LARGE, "ring: %u closures were cut", c->partial);
    ebpfMonClosuresFree(c);
    c = large("ladder", ladder, &bytes);
    testOk(c->twice == LARGE - 1, "ladder: %u records are reached twice", c->twice); /* the first is cut, so all below
                                                                                      * it are flagged */
    ebpfMonClosuresFree(c);
    c = large("star", star, &bytes);
    testOk(c->partial == 0 && c->len[0] == 1 && c->len[LARGE / 2] == 2, "star: each closure has two records");
    ebpfMonClosuresFree(c);
}

/* A chain of 1,999 records. Its last record has links to 100,000 others, and to each of these another record has a
 * link. So they can be reached in two ways and have 2,000 records above them, but no chain processes them twice. The
 * searches must end, and records that were not searched are taken for reached twice. */
static void testCostly(void)
{
    enum { LENGTH = 1999, N = LENGTH + 2 * LARGE };
    uint32_t *start = malloc((N + 1) * sizeof(*start)), *to = malloc(N * sizeof(*to)), n = 0;
    ebpfMonClosures *c;
    double took;
    clock_t begin;

    for (uint32_t v = 0; v < N; v++) {
        start[v] = n;
        if (v < LENGTH - 1)
            to[n++] = v + 1;
        for (uint32_t end = 0; v == LENGTH - 1 && end < LARGE; end++)
            to[n++] = LENGTH + end;
        if (v >= LENGTH + LARGE)
            to[n++] = v - LARGE;
    }
    start[N] = n;
    begin = clock(); /* CPU time, because other tests run at the same time */
    c = ebpfMonClosuresMake(N, start, to, LIST(N), UINT32_MAX);
    took = (double)(clock() - begin) / CLOCKS_PER_SEC;
    testOk(c && took < 5 && c->twice > LARGE / 4 && c->twice < LARGE,
           "costly: %u of %d closures were given up, %.1f ms", c ? c->twice : 0, LARGE, took * 1e3);
    ebpfMonClosuresFree(c);
    free(start);
    free(to);
}

static void runClosure(void)
{
    testNothing();
    testByHand();
    testRandom(1);
    testRandom(0);
    testLarge();
    testCostly();
}

/* --- Stretch --- */

/* Stretches: records that one look can count together, and records that it cannot. */

#define MAX_N 64

/* A small database: links in their order; the forward link is marked. */
typedef struct {
    uint32_t n, edges, from[256], to[256], fwd[MAX_N];
    uint8_t  skip[MAX_N];
} database;

static void begin(database *d, uint32_t n)
{
    memset(d, 0, sizeof(*d));
    d->n = n;
    for (uint32_t i = 0; i < n; i++)
        d->fwd[i] = EBPFMON_NO_RECORD;
}

static void addLink(database *d, uint32_t from, uint32_t to, int forward)
{
    d->from[d->edges] = from;
    d->to[d->edges++] = to;
    if (forward)
        d->fwd[from] = to;
}

static ebpfMonStretches *make(const database *d, unsigned max)
{
    uint32_t start[MAX_N + 1], to[256], e = 0;
    ebpfMonClosures *c;
    ebpfMonStretches *s;

    for (uint32_t i = 0; i < d->n; i++) {
        start[i] = e;
        for (uint32_t k = 0; k < d->edges; k++)
            if (d->from[k] == i)
                to[e++] = d->to[k];
    }
    start[d->n] = e;
    c = ebpfMonClosuresMake(d->n, start, to, d->n * 4 + 16, MAX_N);
    s = c ? ebpfMonStretchesMake(d->n, c->list, start, to, d->fwd, d->skip, max) : NULL;
    ebpfMonClosuresFree(c);
    if (!s)
        testAbort("out of memory");
    return s;
}

static void expect(const database *d, unsigned max, const char *ahead, const char *what)
{
    ebpfMonStretches *s = make(d, max);
    char got[MAX_N + 1] = "";

    for (uint32_t i = 0; i < d->n; i++)
        got[i] = (char)('0' + s->ahead[i]);
    if (!testOk(strcmp(got, ahead) == 0, "%s", what))
        testDiag("wanted %s, got %s", ahead, got);
    ebpfMonStretchesFree(s);
}

static void known(void)
{
    database d;

    begin(&d, 5);
    for (uint32_t i = 0; i < 4; i++)
        addLink(&d, i, i + 1, 1);
    expect(&d, 63, "43210", "a chain is one stretch");
    expect(&d, 2, "10210", "a long chain is several, none longer than allowed");
    d.skip[2] = 1;
    expect(&d, 63, "10010", "a record with a time stamp that shows no processing is in no stretch");
    d.skip[2] = 0;
    addLink(&d, 1, 4, 0);
    expect(&d, 63, "10100", "a record with two links ends it, and so does one that two records process");

    begin(&d, 3);
    addLink(&d, 0, 1, 0); /* by INP PP: the other record processes before this one sets its time stamp */
    addLink(&d, 1, 2, 1);
    expect(&d, 63, "010", "only forward links make one");

    begin(&d, 4);
    addLink(&d, 0, 2, 1);
    addLink(&d, 1, 2, 1);
    addLink(&d, 2, 3, 1);
    expect(&d, 63, "0010", "where two chains meet a new one begins");

    begin(&d, 3);
    addLink(&d, 0, 1, 1);
    addLink(&d, 1, 2, 1);
    addLink(&d, 2, 0, 1);
    expect(&d, 63, "210", "in a ring it ends where the order ends");
    begin(&d, 1);
    addLink(&d, 0, 0, 1);
    expect(&d, 63, "0", "a record that processes itself is in none");
}

/* In any database: only the previous record of the stretch makes a record of a stretch process. */
static void anyDatabase(void)
{
    unsigned wrong = 0, joined = 0;

    srand(1);
    for (int round = 0; round < 2000; round++) {
        database d;
        ebpfMonStretches *s;

        begin(&d, 2 + (uint32_t)rand() % 30);
        for (uint32_t i = 0; i + 1 < d.n; i++)
            if (rand() % 4)
                addLink(&d, i, rand() % 5 ? i + 1 : (uint32_t)rand() % d.n, 1);
        for (int k = rand() % 4; k > 0; k--)
            addLink(&d, (uint32_t)rand() % d.n, (uint32_t)rand() % d.n, 0);
        for (uint32_t i = 0; i < d.n; i++)
            d.skip[i] = rand() % 20 == 0;
        s = make(&d, 63);
        for (uint32_t i = 0; i < d.n; i++) {
            uint32_t next, out = 0, in = 0;

            if (!s->ahead[i])
                continue;
            joined++;
            next = s->order[s->place[i] + 1];
            for (uint32_t k = 0; k < d.edges; k++) {
                out += d.from[k] == i;
                in += d.to[k] == next;
            }
            wrong += d.fwd[i] != next || out != 1 || in != 1 || d.skip[i] || d.skip[next] ||
                     s->ahead[next] != s->ahead[i] - 1 || ebpfMonStretchBefore(s, next) != i;
        }
        ebpfMonStretchesFree(s);
    }
    testOk(wrong == 0, "2000 databases: %u records out of place", wrong);
    testOk(joined > 1000, "the databases had stretches (%u)", joined);
}

static void runStretch(void)
{
    known();
    anyDatabase();
}

MAIN(testClosure)
{
    testPlan(0);
    runClosure();
    runStretch();
    return testDone();
}
