/* SPDX-License-Identifier: BSD-3-Clause */
/* Once a second: what each IOC uses, what waits in it, whether its scan threads keep time, and which IOCs ended, came
 * back or hang. Publishing thread only. */
#ifndef EBPFMON_HEALTHCOLLECTOR_H
#define EBPFMON_HEALTHCOLLECTOR_H

#include "watch/target.h"

typedef struct ebpfMonHealthCollector ebpfMonHealthCollector;

/* "targets" stays the caller's. NULL without memory. */
ebpfMonHealthCollector *ebpfMonHealthCollectorNew(ebpfMonTargets *targets);
void ebpfMonHealthCollectorFree(ebpfMonHealthCollector *collector);

/* Reads the IOCs and publishes the group ebpfMonGroupHealth; tells nobody. Takes the targets lock and that of the
 * published values, each for a copy. */
void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *collector);

#endif
