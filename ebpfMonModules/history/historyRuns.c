/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/historyRuns.h"

#define RUNS    4096            /* a power of two; of each place the newest run is kept */
#define LONGEST 600000000000ull /* ns; a run is written after this … */
#define REST    10000000000ull  /* … or when the writer has rested so long */

#define SINGLE  200000000ull    /* ns between two rows of one writer that follow from what people wrote */
#define SETTLE  3000000000ull   /* ns; a put waits for its result and its packet for less */
#define CHAINS  8192            /* a power of two */
#define DEPTH   8               /* chains that are followed from an effect to what a person wrote */

/* A row with a copy of its texts. */
typedef struct {
    ebpfMonHistoryRow row; /* n 0: free */
    char    *text;
} keptRow;

typedef struct {
    keptRow  sum, last;    /* all puts but the last; the last, which may become a row of its own */
    uint64_t hash;
    uint64_t singleAt;     /* ns; the last one that stayed a row */
} run;

/* A chain that began with a put. */
typedef struct {
    char id[32];           /* empty: free */
    char source[32];       /* empty: a person's put */
} begunChain;

struct ebpfMonHistoryRuns {
    void (*write)(void *arg, const ebpfMonHistoryRow *row);
    void *arg;
    run   place[RUNS];
    begunChain chain[CHAINS]; /* of each place the newest one */
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
    for (unsigned i = 0; runs && i < RUNS; i++) {
        free(runs->place[i].sum.text);
        free(runs->place[i].last.text);
    }
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

static begunChain *findPlace(ebpfMonHistoryRuns *runs, const char *chain)
{
    uint64_t hash = addHash(14695981039346656037u, chain);

    return &runs->chain[(hash ^ hash >> 32) & (CHAINS - 1)];
}

void ebpfMonHistoryRunsNoteChain(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row)
{
    begunChain *c;

    if (!row->chain || !row->chain[0] || (row->automatic && (!row->source || !row->source[0])))
        return;
    c = findPlace(runs, row->chain);
    snprintf(c->id, sizeof(c->id), "%s", row->chain);
    snprintf(c->source, sizeof(c->source), "%s", row->automatic ? row->source : "");
}

/* Nonzero: the row follows from what a person wrote. */
static int isEffect(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row)
{
    const char *chain = row->source;

    for (int i = 0; i < DEPTH && chain && chain[0]; i++) {
        const begunChain *c = findPlace(runs, chain);

        if (strcmp(c->id, chain) != 0)
            return 0;
        if (!c->source[0])
            return 1;
        chain = c->source;
    }
    return 0;
}

static void freeRow(keptRow *kept)
{
    free(kept->text);
    memset(kept, 0, sizeof(*kept));
}

/* Copies the row with its texts into one block. 0, or -1 without memory. */
static int copyRow(keptRow *to, const ebpfMonHistoryRow *row)
{
    const char **of[EBPFMON_HISTORY_TEXTS];
    size_t size = 0;
    char *at;

    to->row = *row;
    to->row.kind = "put"; /* the caller's text may not stay */
    ebpfMonHistoryRowList(&to->row, of);
    for (unsigned i = 0; i < EBPFMON_HISTORY_TEXTS; i++)
        size += *of[i] ? strlen(*of[i]) + 1 : 0;
    to->text = at = malloc(size + 1);
    if (!at) {
        to->row.n = 0;
        return -1;
    }
    for (unsigned i = 0; i < EBPFMON_HISTORY_TEXTS; i++)
        if (*of[i]) {
            size_t length = strlen(*of[i]) + 1;

            memcpy(at, *of[i], length);
            *of[i] = at;
            at += length;
        }
    return 0;
}

/* The last put of the run becomes a row, or a part of the sum. */
static void settleLast(ebpfMonHistoryRuns *runs, run *r)
{
    ebpfMonHistoryRow *last = &r->last.row, *sum = &r->sum.row;

    if (!last->n)
        return;
    if (isEffect(runs, last) && last->time - r->singleAt >= SINGLE) {
        r->singleAt = last->time;
        runs->write(runs->arg, last);
        freeRow(&r->last);
        return;
    }
    if (sum->n) {
        last->first = sum->first;
        last->n += sum->n;
        last->old = NULL; /* the value before the whole run is not that of one put */
        last->isNumber = last->isNumber && sum->isNumber;
        last->least = sum->least < last->least ? sum->least : last->least;
        last->most = sum->most > last->most ? sum->most : last->most;
    }
    freeRow(&r->sum);
    r->sum = r->last;
    memset(&r->last, 0, sizeof(r->last));
}

static void endRun(ebpfMonHistoryRuns *runs, run *r)
{
    settleLast(runs, r);
    if (r->sum.row.n)
        runs->write(runs->arg, &r->sum.row);
    freeRow(&r->sum);
    memset(r, 0, sizeof(*r));
}

static const ebpfMonHistoryRow *getRow(const run *r)
{
    return r->last.row.n ? &r->last.row : &r->sum.row;
}

void ebpfMonHistoryRunsAdd(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row)
{
    uint64_t hash = addHash(addHash(addHash(14695981039346656037u, row->ioc), row->pv), row->origin);
    run *r = &runs->place[(hash ^ hash >> 32) & (RUNS - 1)];

    /* a clock that was set back or ahead ends it, too */
    if (getRow(r)->n && !(r->hash == hash && isSameRun(getRow(r), row) && row->time >= getRow(r)->time &&
                          row->time - getRow(r)->time <= REST))
        endRun(runs, r);
    settleLast(runs, r);
    if (r->hash != hash)
        r->singleAt = 0;
    if (copyRow(&r->last, row)) {
        runs->write(runs->arg, row);
        return;
    }
    r->hash = hash;
}

unsigned ebpfMonHistoryRunsEnd(ebpfMonHistoryRuns *runs, uint64_t now, int all)
{
    unsigned open = 0;

    for (unsigned i = 0; i < RUNS; i++) {
        run *r = &runs->place[i];
        const ebpfMonHistoryRow *row = getRow(r), *first = r->sum.row.n ? &r->sum.row : row;

        if (row->n && (all || now - first->first > LONGEST || now - row->time > REST))
            endRun(runs, r);
        else if (r->last.row.n && now - r->last.row.time > SETTLE && isEffect(runs, &r->last.row))
            settleLast(runs, r);
        open += getRow(r)->n > 0;
    }
    return open;
}
