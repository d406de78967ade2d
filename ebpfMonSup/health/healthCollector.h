/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects, once a second, the resources of each IOC, its delays, the periods of its scan threads, which IOCs ended
 * or came back, and which threads hang. Publishing thread only. */
#ifndef EBPFMON_HEALTHCOLLECTOR_H
#define EBPFMON_HEALTHCOLLECTOR_H

#include "watch/target.h"

typedef struct ebpfMonHealthCollector ebpfMonHealthCollector;

/* "targets" stays the caller's. NULL without memory. */
ebpfMonHealthCollector *ebpfMonHealthCollectorNew(ebpfMonTargets *targets);
void ebpfMonHealthCollectorFree(ebpfMonHealthCollector *collector);

/* Reads the IOCs and sets the published values of ebpfMonGroupHealth; the caller notifies this group afterwards.
 * Call this once a second and without a lock: it takes the targets lock and the lock of the published values, each
 * for a short time. */
void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *collector);

/* The IOCs that are gone are known to be: from the next look on they do not count. Any thread. */
void ebpfMonHealthCollectorAcknowledge(ebpfMonHealthCollector *collector);

/* Nonzero: at the last look some thread was in a chain or a callback, or hung: it may hang at the next one. */
int ebpfMonHealthCollectorIsBusy(const ebpfMonHealthCollector *collector);

#endif
