/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "query/queryCells.h"
#include "query/queryIocs.h"
#include "query/queryRows.h"
#include "query/queryRun.h"
#include "query/queryStacks.h"

#define OVER_BUDGET_LOOKS 3   /* a query over its budget at so many looks in a row is stopped; a short burst is
                               * allowed */
#define FIRST_LOOK        0.2 /* s after the start */
#define DRAIN_SECONDS     0.5 /* least time between two readings of the ring */

struct ebpfMonQueryRun {
    const ebpfMonQuerySpec *spec;
    ebpfMonQueryPrograms *programs;
    ebpfMonQueryIocs *iocs;
    ebpfMonQueryRows *rows;
    ebpfMonQueryNames names;
    ebpfMonQueryHeat *heat;     /* NULL: the query has no histogram */
    ebpfMonQueryEvents *events; /* NULL: the query does not show events */
    ebpfMonQueryStacks *stacks; /* NULL: the query does not show stacks */
    ebpfMonQuerySites *sites;   /* NULL: the query has no key that is a site */
    ebpfMonQueryPuts *puts;     /* NULL: the query has no distribution over puts */
    uint64_t missing;           /* stacks for which there was no room */
    double drained;             /* when the ring was last read (monotonic s) */
    double begin, last, due;    /* the start, the last look, the next look (monotonic s) */
    ebpfMonQueryCost *payers;   /* what it takes from each IOC */
    double cost;                /* percent of one core, from the look before to the last look */
    unsigned overBudget;        /* so many looks in a row were over the budget */
};

ebpfMonQueryRun *ebpfMonQueryRunStart(const ebpfMonQuerySpec *spec, const ebpfMonQuerySources *from, char *why,
                                      size_t size)
{
    ebpfMonQueryRun *r = calloc(1, sizeof(*r));

    snprintf(why, size, "out of memory");
    if (!r)
        return NULL;
    r->spec = spec;
    r->names.targets = from->targets;
    r->programs = ebpfMonQueryProgramsLoad(&spec->order, why, size);
    if (r->programs) {
        snprintf(why, size, "out of memory");
        r->iocs = ebpfMonQueryIocsNew(spec, r->programs, &r->names);
        r->payers = ebpfMonQueryCostNew(&spec->order);
        r->names.locks = ebpfMonQueryLocksNew(from->targets);
        r->puts = spec->perPut ? ebpfMonQueryPutsNew(spec, ebpfMonQueryProgramsGetKeySize(r->programs)) : NULL;
        r->rows = ebpfMonQueryRowsNew(spec, r->puts ? ebpfMonQueryPutsGetKeySize(r->puts)
                                                    : ebpfMonQueryProgramsGetKeySize(r->programs));
        r->events = spec->showEvents ? ebpfMonQueryEventsNew(spec, &r->names) : NULL;
        if (ebpfMonQueryHasSite(&spec->order.plan))
            r->names.sites = r->sites = ebpfMonQuerySitesNew(spec, ebpfMonQueryProgramsGetKeySize(r->programs));
        r->stacks = spec->showStacks ? ebpfMonQueryStacksNew(spec, &r->names, r->sites) : NULL;
        if (r->iocs && r->payers && r->rows && r->names.locks && (r->puts || !spec->perPut) &&
            (r->events || !spec->showEvents) && (r->stacks || !spec->showStacks) &&
            (r->sites || !ebpfMonQueryHasSite(&spec->order.plan))) {
            ebpfMonQueryIocsFollow(r->iocs, from->targets, from->worker);
            if (ebpfMonQueryProgramsAttach(r->programs, why, size) == 0) {
                r->begin = r->last = ebpfMonClockSeconds();
                r->heat = spec->order.plan.hist ? ebpfMonQueryHeatNew(spec, r->begin) : NULL;
                r->due = r->begin + fmin(spec->interval, FIRST_LOOK);
                return r;
            }
        }
    }
    ebpfMonQueryRunStop(r);
    return NULL;
}

void ebpfMonQueryRunStop(ebpfMonQueryRun *r)
{
    if (!r)
        return;
    ebpfMonQueryIocsFree(r->iocs);
    ebpfMonQueryCostFree(r->payers);
    ebpfMonQueryRowsFree(r->rows);
    ebpfMonQueryHeatFree(r->heat);
    ebpfMonQueryEventsFree(r->events);
    ebpfMonQueryStacksFree(r->stacks);
    ebpfMonQuerySitesFree(r->sites);
    ebpfMonQueryPutsFree(r->puts);
    ebpfMonQueryProgramsFree(r->programs);
    ebpfMonQueryLocksFree(r->names.locks);
    free(r->names.function);
    free(r);
}

double ebpfMonQueryRunGetDue(const ebpfMonQueryRun *r)
{
    return r->due;
}

double ebpfMonQueryRunGetCostOf(const ebpfMonQueryRun *r, uint32_t iocId)
{
    return ebpfMonQueryCostOfIoc(r->payers, iocId);
}

static void addCell(void *rows, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    ebpfMonQueryRowsAdd(rows, key, cell);
}

/* Adds what a cell has besides the events whose site is known. */
static void addRest(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    const ebpfMonQueryRun *r = arg;
    struct ebpfMonQueryCell rest = { .count = 0 };

    memcpy(&rest, cell, r->spec->order.plan.hist ? sizeof(rest) : offsetof(struct ebpfMonQueryCell, hist));
    ebpfMonQuerySitesSubtract(r->sites, key, &rest);
    ebpfMonQueryRowsAdd(r->rows, key, &rest);
}

/* Reads all results into the rows. Nonzero: not all could be read. */
static int readRows(ebpfMonQueryRun *r)
{
    if (r->puts)
        return ebpfMonQueryPutsLook(r->puts, r->programs, (uint64_t)(ebpfMonClockSeconds() * 1e9), addCell, r->rows);
    if (!r->sites)
        return ebpfMonQueryProgramsReadCells(r->programs, addCell, r->rows);
    ebpfMonQuerySitesRead(r->sites, addCell, r->rows);
    return ebpfMonQueryProgramsReadCells(r->programs, addRest, r);
}

static void addEvent(void *arg, const struct ebpfMonQueryEvent *event)
{
    ebpfMonQueryRun *r = arg;

    if (r->events)
        ebpfMonQueryEventsAdd(r->events, event);
    if (r->stacks)
        ebpfMonQueryStacksAdd(r->stacks, event);
}

void ebpfMonQueryRunDrain(ebpfMonQueryRun *r)
{
    double now = ebpfMonClockSeconds();

    if ((!r->events && !r->stacks) || now - r->drained < DRAIN_SECONDS)
        return;
    r->drained = now;
    ebpfMonQueryProgramsReadEvents(r->programs, addEvent, r);
    if (r->stacks)
        r->missing = ebpfMonQueryStacksFinish(r->stacks);
}

static void describeState(const ebpfMonQueryRun *r, int isComplete, char *message, size_t size)
{
    const char *trouble = ebpfMonQueryIocsGetTrouble(r->iocs);
    const char *lack = ebpfMonQueryProgramsLackKernel(r->programs) ?
                       "; stacks are without functions of the kernel: to read them could crash this one" : "";
    double stepped;
    unsigned iocs = ebpfMonQueryIocsCount(r->iocs, &stepped), files = ebpfMonQueryIocsCountFiles(r->iocs);
    unsigned low = r->spec->order.needsChains || r->spec->perPut ? ebpfMonQueryIocsCountLow(r->iocs) : 0;
    char several[EBPFMON_FUNCTION_NAME + 40] = "", below[80] = "";

    if (files > 1 && strcmp(r->spec->function.object, "*") == 0)
        snprintf(several, sizeof(several), "; %u files have %s: set \"object\"", files, r->spec->function.symbol);
    if (low)
        snprintf(below, sizeof(below), "; %u below level chains: no root; put, author in dbPut only", low);

    if (!isComplete)
        snprintf(message, size, "not all results could be read; read again at the next look");
    else if (trouble[0])
        snprintf(message, size, "%s", trouble);
    else if (r->spec->order.plan.hostWide)
        snprintf(message, size, "looks at all processes of this host%s", lack);
    else
        snprintf(message, size, "looks at %u IOC%s%s%s%s%s", iocs, iocs == 1 ? "" : "s", below, several,
                 stepped > 0 ? "; some probes are single-stepped and cost more" : "", lack);
}

ebpfMonQueryVerdict ebpfMonQueryRunLook(ebpfMonQueryRun *r, const ebpfMonQuerySources *from, int resultNumber,
                                        char *message, size_t size)
{
    struct ebpfMonQueryCounts counts;
    ebpfMonQueryResult *result;
    double now, seconds;
    int isComplete;

    ebpfMonQueryIocsFollow(r->iocs, from->targets, from->worker);
    ebpfMonQueryRowsBegin(r->rows);
    r->drained = 0;
    ebpfMonQueryRunDrain(r);
    now = ebpfMonClockSeconds(); /* what came while all this took its time is read below, and belongs to this look */
    seconds = now - r->last;
    isComplete = readRows(r) == 0;
    ebpfMonQueryRowsEnd(r->rows, &r->names, seconds);
    if (r->heat && isComplete)
        ebpfMonQueryHeatAdd(r->heat, ebpfMonQueryRowsGetBars(r->rows), now);
    if (r->stacks)
        ebpfMonQueryResultsSetStacks(from->results, resultNumber, ebpfMonQueryStacksGetText(r->stacks));
    r->cost = ebpfMonQueryCostLook(r->payers, r->programs, r->iocs, from->costs, seconds, &counts);
    r->overBudget = r->cost > r->spec->budget ? r->overBudget + 1 : 0;
    r->last = now;
    r->due = now + r->spec->interval;
    describeState(r, isComplete, message, size);
    result = ebpfMonQueryResultsLock(from->results, resultNumber);
    result->cost = r->cost;
    result->events = counts.passed * r->spec->order.plan.sample;
    result->dropped = counts.full + counts.faults + counts.lost + ebpfMonQueryProgramsCountSkipped(r->programs);
    if (!r->sites) /* events without a site are in rows, too */
        result->dropped += counts.unsent + r->missing;
    if (r->puts)
        result->dropped += ebpfMonQueryPutsGetLost(r->puts);
    result->time = ebpfMonClockStamp(ebpfMonClockReal());
    ebpfMonQueryRowsCopy(r->rows, result);
    if (r->heat)
        ebpfMonQueryHeatCopy(r->heat, result);
    if (r->events)
        ebpfMonQueryEventsCopy(r->events, result);
    ebpfMonQueryResultsUnlock(from->results);
    if (r->overBudget >= OVER_BUDGET_LOOKS) {
        snprintf(message, size, "stopped: it took %.3g %% of a core, and its \"budget\" is %.3g. Look at fewer IOCs, "
                 "or at a function that is called less often, or set a larger budget", r->cost, r->spec->budget);
        return ebpfMonQueryIsOverBudget;
    }
    return (r->spec->stopSeconds > 0 && now - r->begin >= r->spec->stopSeconds) ||
           (r->spec->stopCount > 0 && (double)counts.passed >= r->spec->stopCount) ? ebpfMonQueryIsDone
                                                                                   : ebpfMonQueryGoesOn;
}
