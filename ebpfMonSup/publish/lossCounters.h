/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that the monitor missed: from counters that only grow to the published counts since the last reset. */
#ifndef EBPFMON_LOSSCOUNTERS_H
#define EBPFMON_LOSSCOUNTERS_H

#include <stdint.h>
#include "ebpfMonEvent.h"
#include "model/losses.h"

#define EBPFMON_LOST_ALL (EBPFMON_LOST_KERNEL + ebpfMonLossKinds) /* the reasons of the kernel part, then our own */

typedef struct ebpfMonLossCounters ebpfMonLossCounters;

/* How the counters are read, so that a test has its own. Any thread. */
typedef void (*ebpfMonLossRead)(uint64_t lost[EBPFMON_LOST_ALL]);

/* From the kernel part's table and model/losses.h. */
void ebpfMonLossReadMonitor(uint64_t lost[EBPFMON_LOST_ALL]);

ebpfMonLossCounters *ebpfMonLossCountersNew(ebpfMonLossRead read); /* NULL without memory */
void ebpfMonLossCountersFree(ebpfMonLossCounters *counters);

/* All that is counted so far counts no more. Any thread. */
void ebpfMonLossCountersReset(ebpfMonLossCounters *counters);

/* Sets published->losses; tells nobody. A message goes to the error log when losses begin: the first time, and after
 * a reset. Publishing thread only. */
void ebpfMonLossCountersPublish(ebpfMonLossCounters *counters);

#endif
