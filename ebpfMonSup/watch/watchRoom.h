/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room watch/, made once and connected to the other rooms. */
#ifndef EBPFMON_WATCHROOM_H
#define EBPFMON_WATCHROOM_H

#include "watch/follower.h"
#include "watch/requests.h"

typedef struct {
    ebpfMonCosts         costs;        /* fixed once they are measured */
    ebpfMonRecordTables *recordTables; /* the follower's */
    ebpfMonGovernor      governor;     /* fixed */
    ebpfMonFollower     *follower;
} ebpfMonWatchRoom;

/* The kernel part must be loaded. Targets, requests and audits stay the caller's. 0, or -1 without memory: then nothing
 * is left. */
int ebpfMonWatchRoomMake(ebpfMonWatchRoom *room, ebpfMonTargets *targets, ebpfMonRequests *requests,
                         ebpfMonAudits *audits, int watchSelf, const ebpfMonFollowerSink *sink);

/* Only while no thread uses them. */
void ebpfMonWatchRoomFree(ebpfMonWatchRoom *room);

#endif
