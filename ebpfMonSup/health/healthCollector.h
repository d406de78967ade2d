/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects, once a second, the resources of each IOC, its delays, the periods of its scan threads, and which IOCs ended, came
 * back or hang. Publishing thread only. */
#ifndef EBPFMON_HEALTHCOLLECTOR_H
#define EBPFMON_HEALTHCOLLECTOR_H

#include "watch/target.h"

typedef struct ebpfMonHealthCollector ebpfMonHealthCollector;

/* "targets" stays the caller's. NULL without memory. */
ebpfMonHealthCollector *ebpfMonHealthCollectorNew(ebpfMonTargets *targets);
void ebpfMonHealthCollectorFree(ebpfMonHealthCollector *collector);

/* Reads the IOCs and sets the published values of the group ebpfMonGroupHealth; the caller notifies the group. Takes the
 * targets lock and the lock of the published values, each for a copy. */
void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *collector);

#endif
