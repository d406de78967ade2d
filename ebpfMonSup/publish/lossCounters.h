/* SPDX-License-Identifier: BSD-3-Clause */
/* The counts of lost events. Their sources only grow; the published counts are those since the last reset. */
#ifndef EBPFMON_LOSSCOUNTERS_H
#define EBPFMON_LOSSCOUNTERS_H

#include <stdint.h>
#include "ebpfMonEvent.h"
#include "model/losses.h"

#define EBPFMON_LOST_ALL (EBPFMON_LOST_KERNEL + ebpfMonLossKinds) /* the reasons of the kernel part, then those of
                                                                   * the user part */

typedef struct ebpfMonLossCounters ebpfMonLossCounters;

/* Reads all counters since the monitor started. A test has a function of its own. Any thread. */
typedef void (*ebpfMonLossRead)(void *arg, uint64_t lost[EBPFMON_LOST_ALL]);

/* Reads the counters of the kernel part's table, and those of "losses", an ebpfMonLosses. */
void ebpfMonLossReadMonitor(void *losses, uint64_t lost[EBPFMON_LOST_ALL]);

ebpfMonLossCounters *ebpfMonLossCountersNew(ebpfMonLossRead read, void *arg); /* NULL without memory */
void ebpfMonLossCountersFree(ebpfMonLossCounters *counters);

/* The counts begin at 0 again. Any thread. */
void ebpfMonLossCountersReset(ebpfMonLossCounters *counters);

/* Sets published->losses, and notifies nobody. Logs a message when losses begin: for the first time, and after a reset.
 * Publishing thread only. */
void ebpfMonLossCountersPublish(ebpfMonLossCounters *counters);

#endif
