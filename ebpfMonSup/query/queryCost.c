/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "query/queryCost.h"

typedef struct {
    uint32_t iocId;   /* who pays now; 0: nobody, or all other processes */
    double   stepped; /* part of its probes that the kernel single-steps */
    double   cost;    /* at the last look */
    struct ebpfMonQueryCounts counts; /* at the last look. They go on if another IOC gets this number */
} Payer;

struct ebpfMonQueryCost {
    const ebpfMonQueryOrder *order;
    Payer payer[EBPFMON_QUERY_PAYERS];
    unsigned used; /* payers that have been used so far; number 0 always is */
};

ebpfMonQueryCost *ebpfMonQueryCostNew(const ebpfMonQueryOrder *order)
{
    ebpfMonQueryCost *c = calloc(1, sizeof(*c));

    if (c) {
        c->order = order;
        c->used = 1;
    }
    return c;
}

void ebpfMonQueryCostFree(ebpfMonQueryCost *c)
{
    free(c);
}

/* Returns the time (ns) that a trap takes from the IOC, without the program. Tracepoints and the profile have no
 * trap. *record: the time of a trap at dbProcess, where each call has two traps, at entry and return. */
static double getTrapCost(const ebpfMonQueryOrder *order, const ebpfMonCosts *costs, double stepped, double *record)
{
    double entry = costs->entryNs + stepped * (costs->steppedNs - costs->entryNs);

    *record = (entry + costs->returnNs) / 2;
    switch (order->source) {
    case ebpfMonQueryAtEntry: case ebpfMonQueryUsdt: return entry;
    case ebpfMonQueryAtReturn: return entry + costs->returnNs;
    case ebpfMonQueryCall:     return *record;
    default:                   return 0;
    }
}

static void notePayer(void *arg, uint32_t iocId, unsigned payer, double stepped)
{
    ebpfMonQueryCost *c = arg;

    c->payer[payer].stepped = stepped;
    if (payer)
        c->payer[payer].iocId = iocId;
    if (payer >= c->used)
        c->used = payer + 1;
}

static void addCounts(struct ebpfMonQueryCounts *sum, const struct ebpfMonQueryCounts *more)
{
    sum->runs += more->runs;
    sum->ns += more->ns;
    sum->passed += more->passed;
    sum->full += more->full;
    sum->unsent += more->unsent;
    sum->faults += more->faults;
    sum->lost += more->lost;
    sum->records += more->records;
}

double ebpfMonQueryCostLook(ebpfMonQueryCost *c, ebpfMonQueryPrograms *programs, const ebpfMonQueryIocs *iocs,
                            const ebpfMonCosts *costs, double seconds, struct ebpfMonQueryCounts *sum)
{
    double all = 0;

    for (unsigned i = 0; i < c->used; i++)
        c->payer[i].iocId = 0;
    ebpfMonQueryIocsListPayers(iocs, notePayer, c);
    memset(sum, 0, sizeof(*sum));
    for (unsigned i = 0; i < c->used; i++) {
        Payer *p = &c->payer[i];
        double record, trap = getTrapCost(c->order, costs, p->stepped, &record);
        struct ebpfMonQueryCounts now;

        ebpfMonQueryProgramsReadCounts(programs, i, &now);
        p->cost = seconds <= 0 ? 0 : 100 / (seconds * 1e9) *
                  ((double)(now.runs - p->counts.runs) * trap + (double)(now.records - p->counts.records) * record +
                   (double)(now.ns - p->counts.ns));
        p->counts = now;
        addCounts(sum, &now);
        all += p->cost;
    }
    return all;
}

double ebpfMonQueryCostOfIoc(const ebpfMonQueryCost *c, uint32_t iocId)
{
    for (unsigned i = 1; i < c->used; i++)
        if (c->payer[i].iocId == iocId)
            return c->payer[i].cost;
    return 0;
}
