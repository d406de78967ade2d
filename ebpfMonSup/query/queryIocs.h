/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaches and detaches the probes of a running query, as the IOCs that it looks at come and go. The query thread only. */
#ifndef EBPFMON_QUERYIOCS_H
#define EBPFMON_QUERYIOCS_H

#include "common/worker.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"
#include "watch/target.h"

typedef struct ebpfMonQueryIocs ebpfMonQueryIocs;

/* NULL: no memory. "names": gets the functions that are probed; they stay there when their IOC has ended. */
ebpfMonQueryIocs *ebpfMonQueryIocsNew(const ebpfMonQuerySpec *spec, ebpfMonQueryPrograms *programs, ebpfMonQueryNames *names);

/* Detaches from all IOCs. NULL does no harm. */
void ebpfMonQueryIocsFree(ebpfMonQueryIocs *iocs);

/* Attaches to new IOCs, and forgets IOCs that have ended. It may take seconds, and gives signs of progress for "worker" (may
 * be NULL). */
void ebpfMonQueryIocsFollow(ebpfMonQueryIocs *iocs, ebpfMonTargets *targets, ebpfMonWorker *worker);

/* The number of IOCs that it looks at. *stepped: part of its probes that are single-stepped, 0 to 1. */
unsigned ebpfMonQueryIocsCount(const ebpfMonQueryIocs *iocs, double *stepped);

/* The reason why it cannot look at an IOC, of the first such IOC. "": there is none. */
const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *iocs);

#endif
