/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room watch/, made once and connected to the other rooms. */
#ifndef EBPFMON_WATCHROOM_H
#define EBPFMON_WATCHROOM_H

#include "watch/follower.h"

typedef struct {
    ebpfMonCosts         costs;        /* fixed once they are measured */
    ebpfMonRequests     *requests;     /* any thread */
    ebpfMonRecordTables *recordTables; /* the follower's */
    ebpfMonGovernor     *governor;     /* the follower's */
    ebpfMonFollower     *follower;
} ebpfMonWatchRoom;

struct ebpfMonMonitor;

/* Makes m->watch, when m->targets is made; the kernel part must be loaded. "first": the filter to begin with. 0, or -1
 * without memory: then nothing is left. */
int ebpfMonWatchRoomMake(struct ebpfMonMonitor *m, const ebpfMonFilter *first);

/* The filter in force, for the callbacks of other rooms. "monitor": the ebpfMonMonitor. Any thread. */
void ebpfMonWatchRoomGetFilter(void *monitor, ebpfMonFilter *filter);

/* Only while no thread uses them. */
void ebpfMonWatchRoomFree(ebpfMonWatchRoom *room);

#endif
