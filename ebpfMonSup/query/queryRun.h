/* SPDX-License-Identifier: BSD-3-Clause */
/* One query that runs: its programs, its IOCs, its rows, its cost. The query thread only. */
#ifndef EBPFMON_QUERYRUN_H
#define EBPFMON_QUERYRUN_H

#include "common/worker.h"
#include "probe/calibrate.h"
#include "query/querySpec.h"
#include "watch/target.h"

typedef struct ebpfMonQueryRun ebpfMonQueryRun;

/* What it needs of the monitor; all of it outlives the run. */
typedef struct {
    ebpfMonTargets *targets;
    const ebpfMonCosts *costs; /* of traps */
    ebpfMonWorker *worker;     /* gives signs of progress; may be NULL */
} ebpfMonQuerySources;

/* Loads and attaches. "spec" must outlive it. NULL with why not. */
ebpfMonQueryRun *ebpfMonQueryRunStart(const ebpfMonQuerySpec *spec, const ebpfMonQuerySources *from, char *why,
                                      size_t size);
/* Detaches and unloads; NULL does no harm. */
void ebpfMonQueryRunStop(ebpfMonQueryRun *run);

typedef enum { ebpfMonQueryGoesOn, ebpfMonQueryIsDone, ebpfMonQueryIsTooDear } ebpfMonQueryVerdict;

/* Follows the IOCs, reads the tables, and writes into the result what it finds, but for the state. "message" says what is
 * to be told. */
ebpfMonQueryVerdict ebpfMonQueryRunLook(ebpfMonQueryRun *run, const ebpfMonQuerySources *from, int resultNumber,
                                        char *message, size_t size);

/* Takes the events that were sent, if it is time: their ring has room for a second or two. */
void ebpfMonQueryRunDrain(ebpfMonQueryRun *run);

/* When it wants to look again; monotonic s. */
double ebpfMonQueryRunGetDue(const ebpfMonQueryRun *run);

#endif
