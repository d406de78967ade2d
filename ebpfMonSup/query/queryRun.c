/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "query/queryEvents.h"
#include "query/queryIocs.h"
#include "query/queryRows.h"
#include "query/queryRun.h"
#include "query/queryStacks.h"

#define TOO_DEAR_LOOKS 3   /* in a row: a burst alone does not stop a query */
#define FIRST_LOOK     0.2 /* s after the start */
#define DRAIN_SECONDS  0.5 /* at least, between two readings of the ring */

struct ebpfMonQueryRun {
    const ebpfMonQuerySpec *spec;
    ebpfMonQueryPrograms *programs;
    ebpfMonQueryIocs *iocs;
    ebpfMonQueryRows *rows;
    ebpfMonQueryNames names;
    ebpfMonQueryEvents *events; /* NULL: not asked for */
    ebpfMonQueryStacks *stacks; /* … */
    uint64_t missing;           /* stacks that had no room */
    double drained;             /* when the ring was read; monotonic s */
    double begin, last, due;           /* monotonic s */
    struct ebpfMonQueryCounts counts;  /* at the last look */
    double cost;                       /* percent of one core, since the look before */
    unsigned tooDear;                  /* looks in a row */
};

ebpfMonQueryRun *ebpfMonQueryRunStart(const ebpfMonQuerySpec *spec, const ebpfMonQuerySources *from, char *why, size_t size)
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
        r->rows = ebpfMonQueryRowsNew(spec, ebpfMonQueryProgramsGetKeySize(r->programs));
        r->events = spec->showEvents ? ebpfMonQueryEventsNew(spec, &r->names) : NULL;
        r->stacks = spec->showStacks ? ebpfMonQueryStacksNew(spec, &r->names) : NULL;
        if (r->iocs && r->rows && (r->events || !spec->showEvents) && (r->stacks || !spec->showStacks)) {
            ebpfMonQueryIocsFollow(r->iocs, from->targets, from->worker);
            if (ebpfMonQueryProgramsAttach(r->programs, why, size) == 0) {
                r->begin = r->last = ebpfMonClockSeconds();
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
    ebpfMonQueryRowsFree(r->rows);
    ebpfMonQueryEventsFree(r->events);
    ebpfMonQueryStacksFree(r->stacks);
    ebpfMonQueryProgramsFree(r->programs);
    free(r->names.function);
    free(r);
}

double ebpfMonQueryRunGetDue(const ebpfMonQueryRun *r)
{
    return r->due;
}

/* ns that a trap takes from the IOC, besides the program. Tracepoints and the profile have no trap. "record": those at
 * dbProcess, of which two belong to a call. */
static double costOfTrap(const ebpfMonQueryRun *r, const ebpfMonCosts *costs, double *record)
{
    double stepped, entry;

    ebpfMonQueryIocsCount(r->iocs, &stepped);
    entry = costs->entryNs + stepped * (costs->steppedNs - costs->entryNs);
    *record = (entry + costs->returnNs) / 2;
    switch (r->spec->order.source) {
    case ebpfMonQueryAtEntry: case ebpfMonQueryUsdt: return entry;
    case ebpfMonQueryAtReturn: return entry + costs->returnNs;
    case ebpfMonQueryCall:     return *record;
    default:                   return 0;
    }
}

static void measureCost(ebpfMonQueryRun *r, const ebpfMonCosts *costs, const struct ebpfMonQueryCounts *now, double seconds)
{
    double record, trap = costOfTrap(r, costs, &record);
    double ns = (double)(now->runs - r->counts.runs) * trap + (double)(now->records - r->counts.records) * record +
                (double)(now->ns - r->counts.ns);

    r->cost = seconds > 0 ? 100 * ns / (seconds * 1e9) : 0;
    r->tooDear = r->cost > r->spec->budget ? r->tooDear + 1 : 0;
}

static void addCell(void *rows, const uint8_t *key, const struct ebpfMonQueryCell *cell)
{
    ebpfMonQueryRowsAdd(rows, key, cell);
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

static void describeState(const ebpfMonQueryRun *r, int isWhole, char *message, size_t size)
{
    const char *trouble = ebpfMonQueryIocsGetTrouble(r->iocs);
    double stepped;
    unsigned iocs = ebpfMonQueryIocsCount(r->iocs, &stepped);

    if (!isWhole)
        snprintf(message, size, "the results could not be read whole");
    else if (trouble[0])
        snprintf(message, size, "%s", trouble);
    else if (r->spec->order.plan.hostWide)
        snprintf(message, size, "looks at all processes of this host");
    else
        snprintf(message, size, "looks at %u IOC%s%s", iocs, iocs == 1 ? "" : "s",
                 stepped > 0 ? "; some probes are single-stepped, which is dear" : "");
}

ebpfMonQueryVerdict ebpfMonQueryRunLook(ebpfMonQueryRun *r, const ebpfMonQuerySources *from, int resultNumber,
                                        char *message, size_t size)
{
    struct ebpfMonQueryCounts counts;
    double now = ebpfMonClockSeconds(), seconds = now - r->last;
    ebpfMonQueryResult *result;
    int isWhole;

    ebpfMonQueryIocsFollow(r->iocs, from->targets, from->worker);
    ebpfMonQueryRowsBegin(r->rows);
    isWhole = ebpfMonQueryProgramsReadCells(r->programs, addCell, r->rows) == 0;
    ebpfMonQueryRowsEnd(r->rows, &r->names, seconds);
    r->drained = 0;
    ebpfMonQueryRunDrain(r);
    if (r->stacks)
        ebpfMonQueryResultsSetStacks(resultNumber, ebpfMonQueryStacksGetText(r->stacks));
    ebpfMonQueryProgramsReadCounts(r->programs, &counts);
    measureCost(r, from->costs, &counts, seconds);
    r->counts = counts;
    r->last = now;
    r->due = now + r->spec->interval;
    describeState(r, isWhole, message, size);
    result = ebpfMonQueryResultsLock(resultNumber);
    result->cost = r->cost;
    result->events = counts.passed * r->spec->order.plan.sample;
    result->dropped = counts.full + counts.faults + counts.lost + counts.unsent + r->missing;
    result->time = ebpfMonClockStamp(ebpfMonClockReal());
    ebpfMonQueryRowsCopy(r->rows, result);
    if (r->events)
        ebpfMonQueryEventsCopy(r->events, result);
    ebpfMonQueryResultsUnlock();
    if (r->tooDear >= TOO_DEAR_LOOKS) {
        snprintf(message, size, "stopped: it took %.3g %% of a core, and its \"budget\" is %.3g. Ask fewer IOCs, a function "
                 "that is called less often, or set a larger budget", r->cost, r->spec->budget);
        return ebpfMonQueryIsTooDear;
    }
    return (r->spec->stopSeconds > 0 && now - r->begin >= r->spec->stopSeconds) ||
           (r->spec->stopCount > 0 && (double)counts.passed >= r->spec->stopCount) ? ebpfMonQueryIsDone : ebpfMonQueryGoesOn;
}
