/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and removes the probes of a running query, as IOCs start and end. The query thread only. */
#ifndef EBPFMON_QUERYIOCS_H
#define EBPFMON_QUERYIOCS_H

#include <stdint.h>
#include "common/worker.h"
#include "probe/calibrate.h"
#include "query/queryPrograms.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"
#include "watch/target.h"

typedef struct ebpfMonQueryIocs ebpfMonQueryIocs;

/* All arguments stay the caller's. The probed functions are added to "names", and stay there when their IOC has
 * ended. NULL without memory. */
ebpfMonQueryIocs *ebpfMonQueryIocsNew(const ebpfMonQuerySpec *spec, ebpfMonQueryPrograms *programs,
                                      ebpfMonQueryNames *names);

/* Removes all probes. NULL does no harm. */
void ebpfMonQueryIocsFree(ebpfMonQueryIocs *iocs);

/* Sets probes in new IOCs, and forgets IOCs that have ended. Takes the targets lock for a short time. It may take
 * seconds, and gives signs of progress for "worker" (may be NULL). */
void ebpfMonQueryIocsFollow(ebpfMonQueryIocs *iocs, ebpfMonTargets *targets, ebpfMonWorker *worker);

/* The number of IOCs at which the query looks. *stepped: the part of its probes that the kernel single-steps, 0 to
 * 1. */
unsigned ebpfMonQueryIocsCount(const ebpfMonQueryIocs *iocs, double *stepped);

/* How many files of an IOC have the function that the query names; 0: it names a pattern. The largest of all IOCs. */
unsigned ebpfMonQueryIocsCountFiles(const ebpfMonQueryIocs *iocs);

/* How many IOCs are below level chains, so that roots are not known there, nor the put to which an event behind dbPut
 * belongs. */
unsigned ebpfMonQueryIocsCountLow(const ebpfMonQueryIocs *iocs);

/* The name of an IOC at which the query cannot look, and the reason. "": there is none. Valid until the next call of
 * Follow. */
const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *iocs);

/* --- cost ---
 *
 * What a running query takes: from each IOC, and in all. Percent of one core. The query thread only.
 */

typedef struct ebpfMonQueryCost ebpfMonQueryCost;

ebpfMonQueryCost *ebpfMonQueryCostNew(const ebpfMonQueryOrder *order); /* NULL without memory */
void ebpfMonQueryCostFree(ebpfMonQueryCost *cost);                     /* NULL does no harm */

/* Reads the counters of the programs. *sum: of all processes, since the query began. "seconds": since the last call.
 * Returns the cost in these seconds, of all IOCs and other processes. */
double ebpfMonQueryCostLook(ebpfMonQueryCost *cost, ebpfMonQueryPrograms *programs, const ebpfMonQueryIocs *iocs,
                            const ebpfMonCosts *costs, double seconds, struct ebpfMonQueryCounts *sum);

/* What this IOC paid at the last look. 0: the query does not look at it. */
double ebpfMonQueryCostOfIoc(const ebpfMonQueryCost *cost, uint32_t iocId);

#endif
