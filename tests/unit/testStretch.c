/* SPDX-License-Identifier: BSD-3-Clause */
/* Stretches: records that one look can count together, and records that it cannot. */
#include <stdlib.h>
#include <string.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "ioc/closure.h"

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

MAIN(testStretch)
{
    testPlan(10);
    known();
    anyDatabase();
    return testDone();
}
