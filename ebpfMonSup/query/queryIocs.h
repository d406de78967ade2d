/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets and removes the probes of a running query, as IOCs start and end. The query thread only. */
#ifndef EBPFMON_QUERYIOCS_H
#define EBPFMON_QUERYIOCS_H

#include "common/worker.h"
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

/* Calls "each" for each IOC at which the query looks: the number under which the kernel part counts what it pays, and
 * the part of its probes that the kernel single-steps. 0 is the number of all IOCs for which there is no other, and of
 * other processes. */
typedef void (*ebpfMonQueryPayerFn)(void *arg, uint32_t iocId, unsigned payer, double stepped);
void ebpfMonQueryIocsListPayers(const ebpfMonQueryIocs *iocs, ebpfMonQueryPayerFn each, void *arg);

/* The name of an IOC at which the query cannot look, and the reason. "": there is none. Valid until the next call of
 * Follow. */
const char *ebpfMonQueryIocsGetTrouble(const ebpfMonQueryIocs *iocs);

#endif
