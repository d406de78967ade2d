/* SPDX-License-Identifier: BSD-3-Clause */
/* A query that runs: its programs, its IOCs, its rows, its cost. The query thread only. */
#ifndef EBPFMON_QUERYRUN_H
#define EBPFMON_QUERYRUN_H

#include "common/worker.h"
#include "query/queryValues.h"
#include "probe/calibrate.h"
#include "query/querySpec.h"
#include "watch/target.h"

typedef struct ebpfMonQueryRun ebpfMonQueryRun;

/* What a run needs from the monitor. All members must outlive the run. */
typedef struct {
    ebpfMonTargets *targets;
    const ebpfMonCosts *costs; /* of traps */
    ebpfMonQueryResults *results;
    ebpfMonWorker *worker;     /* gives signs of progress; may be NULL */
} ebpfMonQuerySources;

/* Loads the programs and attaches them, which may take seconds. "spec" must outlive the run. NULL: "why" says what is
 * wrong. */
ebpfMonQueryRun *ebpfMonQueryRunStart(const ebpfMonQuerySpec *spec, const ebpfMonQuerySources *from, char *why,
                                      size_t size);
/* Detaches and unloads the programs. NULL does no harm. */
void ebpfMonQueryRunStop(ebpfMonQueryRun *run);

typedef enum { ebpfMonQueryGoesOn, ebpfMonQueryIsDone, ebpfMonQueryIsOverBudget } ebpfMonQueryVerdict;

/* Follows the IOCs, reads the tables, and writes the result, except its state. "message" gets a text for the
 * operator. The caller holds no lock. */
ebpfMonQueryVerdict ebpfMonQueryRunLook(ebpfMonQueryRun *run, const ebpfMonQuerySources *from, int resultNumber,
                                        char *message, size_t size);

/* Takes the events out of their ring, if this is due. Call it at least once a second, because the ring has room for
 * the events of one or two seconds. */
void ebpfMonQueryRunDrain(ebpfMonQueryRun *run);

/* When to call ebpfMonQueryRunLook again (monotonic s). */
double ebpfMonQueryRunGetDue(const ebpfMonQueryRun *run);

/* What the query took from this IOC at the last look, percent of one core. 0: it does not watch this IOC. */
double ebpfMonQueryRunGetCostOf(const ebpfMonQueryRun *run, uint32_t iocId);

#endif
