/* SPDX-License-Identifier: BSD-3-Clause */
/* The IOCs that a running query asks about: they come and go, and its probes with them. The query thread only. */
#ifndef EBPFMON_QUERYIOCS_H
#define EBPFMON_QUERYIOCS_H

#include "common/worker.h"
#include "query/queryKeyText.h"
#include "query/querySpec.h"
#include "watch/target.h"

typedef struct ebpfMonQueryIocs ebpfMonQueryIocs;

/* NULL: no memory. "names": it adds the functions that it probes, and they stay when their IOC has ended. */
ebpfMonQueryIocs *ebpfMonQueryIocsNew(const ebpfMonQuerySpec *spec, ebpfMonQueryPrograms *programs, ebpfMonQueryNames *names);

/* Detaches from all. NULL does no harm. */
void ebpfMonQueryIocsFree(ebpfMonQueryIocs *iocs);

/* Attaches to IOCs that are new, and forgets those that have ended. It may take seconds: it gives signs for "worker" (may
 * be NULL). */
void ebpfMonQueryIocsFollow(ebpfMonQueryIocs *iocs, ebpfMonTargets *targets, ebpfMonWorker *worker);

/* How many it looks at. *stepped: how many of its probes of functions are single-stepped, 0 to 1. */
unsigned ebpfMonQueryIocsCount(const ebpfMonQueryIocs *iocs, double *stepped);

/* What is wrong with the first of those that it should look at and cannot. "": nothing. */
const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *iocs);

#endif
