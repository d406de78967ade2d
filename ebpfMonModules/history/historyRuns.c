/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/historyRuns.h"

#define RUNS    4096            /* a power of two; of each place the newest run is kept */
#define LONGEST 600000000000ull /* ns; a run is written after this … */
#define REST    10000000000ull  /* … or when the writer has rested so long */

typedef struct {
    ebpfMonHistoryRow row; /* n 0: free; its texts lie in "text" */
    uint64_t hash;
    char    *text;
} run;

struct ebpfMonHistoryRuns {
    void (*write)(void *arg, const ebpfMonHistoryRow *row);
    void *arg;
    run   place[RUNS];
};

ebpfMonHistoryRuns *ebpfMonHistoryRunsNew(void (*write)(void *arg, const ebpfMonHistoryRow *row), void *arg)
{
    ebpfMonHistoryRuns *runs = calloc(1, sizeof(*runs));

    if (runs) {
        runs->write = write;
        runs->arg = arg;
    }
    return runs;
}

void ebpfMonHistoryRunsFree(ebpfMonHistoryRuns *runs)
{
    for (unsigned i = 0; runs && i < RUNS; i++)
        free(runs->place[i].text);
    free(runs);
}

/* FNV-1a */
static uint64_t addHash(uint64_t hash, const char *text)
{
    for (const char *c = text ? text : ""; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return (hash ^ 255) * 1099511628211u;
}

static int isSameText(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Nonzero: both are puts of one writer to one PV, with one result. */
static int isSameRun(const ebpfMonHistoryRow *a, const ebpfMonHistoryRow *b)
{
    return isSameText(a->ioc, b->ioc) && isSameText(a->pv, b->pv) && isSameText(a->who, b->who) &&
           isSameText(a->origin, b->origin) && isSameText(a->result, b->result) && isSameText(a->reason, b->reason);
}

static void endRun(ebpfMonHistoryRuns *runs, run *r)
{
    if (r->row.n)
        runs->write(runs->arg, &r->row);
    free(r->text);
    memset(r, 0, sizeof(*r));
}

/* Copies the row with its texts into one block. 0, or -1 without memory. */
static int copyRow(run *r, const ebpfMonHistoryRow *row)
{
    const char **of[] = { &r->row.kind, &r->row.ioc, &r->row.pv, &r->row.value, &r->row.old, &r->row.user, &r->row.host,
                          &r->row.peer, &r->row.who, &r->row.origin, &r->row.result, &r->row.reason };
    const unsigned count = sizeof(of) / sizeof(of[0]);
    size_t size = 0;
    char *to;

    r->row = *row;
    for (unsigned i = 0; i < count; i++)
        size += *of[i] ? strlen(*of[i]) + 1 : 0;
    r->text = to = malloc(size + 1);
    if (!to)
        return -1;
    for (unsigned i = 0; i < count; i++)
        if (*of[i]) {
            size_t length = strlen(*of[i]) + 1;

            memcpy(to, *of[i], length);
            *of[i] = to;
            to += length;
        }
    return 0;
}

static void extendRun(ebpfMonHistoryRuns *runs, run *r, const ebpfMonHistoryRow *row)
{
    run more = { .hash = r->hash };

    if (copyRow(&more, row)) {
        runs->write(runs->arg, row);
        return;
    }
    more.row.first = r->row.first;
    more.row.n = r->row.n + row->n;
    more.row.old = NULL; /* the value before the whole run is not that of one put */
    more.row.isNumber = r->row.isNumber && row->isNumber;
    if (more.row.isNumber) {
        more.row.least = r->row.least < row->least ? r->row.least : row->least;
        more.row.most = r->row.most > row->most ? r->row.most : row->most;
    }
    free(r->text);
    *r = more;
}

void ebpfMonHistoryRunsAdd(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row)
{
    uint64_t hash = addHash(addHash(addHash(14695981039346656037u, row->ioc), row->pv), row->origin);
    run *r = &runs->place[(hash ^ hash >> 32) & (RUNS - 1)];

    if (r->row.n && r->hash == hash && isSameRun(&r->row, row) && row->time >= r->row.time) {
        extendRun(runs, r, row);
        return;
    }
    endRun(runs, r);
    if (copyRow(r, row)) {
        memset(r, 0, sizeof(*r));
        runs->write(runs->arg, row);
        return;
    }
    r->hash = hash;
}

void ebpfMonHistoryRunsEnd(ebpfMonHistoryRuns *runs, uint64_t now, int all)
{
    for (unsigned i = 0; i < RUNS; i++) {
        run *r = &runs->place[i];

        /* a clock that was set back ends it, too */
        if (r->row.n && (all || now - r->row.first > LONGEST || now - r->row.time > REST))
            endRun(runs, r);
    }
}
