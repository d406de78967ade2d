/* SPDX-License-Identifier: BSD-3-Clause */
/* What watches IOCs: the modules of watch/, made and put together for the monitor. */
#ifndef EBPFMON_WATCHING_H
#define EBPFMON_WATCHING_H

#include "watch/follower.h"

typedef struct {
    ebpfMonCosts         costs;        /* fixed once they are measured */
    ebpfMonRequests     *requests;     /* any thread */
    ebpfMonRecordTables *recordTables; /* the follower's */
    ebpfMonGovernor     *governor;     /* the follower's */
    ebpfMonFollower     *follower;
} ebpfMonWatching;

/* Makes them; the kernel part must be loaded. "first": the filter to begin with. 0, or -1 without memory: nothing is
 * left of it. */
struct ebpfMonMonitor;
int ebpfMonWatchingMake(struct ebpfMonMonitor *monitor, const ebpfMonFilter *first);

/* Only while no thread uses them. */
void ebpfMonWatchingFree(ebpfMonWatching *watching);

#endif
