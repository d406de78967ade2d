/* SPDX-License-Identifier: BSD-3-Clause */
/* What a running query takes: from each IOC, and in all. Percent of one core. The query thread only. */
#ifndef EBPFMON_QUERYCOST_H
#define EBPFMON_QUERYCOST_H

#include <stdint.h>

#include "probe/calibrate.h"
#include "probe/queryPrograms.h"
#include "query/queryIocs.h"

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
