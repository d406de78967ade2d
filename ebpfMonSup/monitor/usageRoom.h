/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room usage/, made once and connected to the other rooms. */
#ifndef EBPFMON_USAGEROOM_H
#define EBPFMON_USAGEROOM_H

#include "usage/clientLooker.h"
#include "usage/clientReport.h"
#include "usage/unusedReport.h"
#include "usage/useKeeper.h"
#include "usage/useSources.h"

struct ebpfMonMonitor;

typedef struct {
    ebpfMonUsageConf     conf;   /* fixed once the monitor runs */
    ebpfMonUseNotes     *notes;  /* any thread */
    ebpfMonUseKeeper    *keeper; /* any thread */
    ebpfMonUpdateCounts *counts; /* any thread */
    ebpfMonClientTable  *table;  /* any thread */
    ebpfMonClientLooker *looker; /* any thread */
} ebpfMonUsageRoom;

/* Makes m->usage, when m->targets and m->put are made. 0, or -1 without memory: then nothing is left. */
int ebpfMonUsageRoomMake(struct ebpfMonMonitor *m);

/* Both threads. Start: 0, or -1 without memory. Stop: nonzero if one does not end. */
int ebpfMonUsageRoomStart(ebpfMonUsageRoom *room);
int ebpfMonUsageRoomStop(ebpfMonUsageRoom *room);

/* Only while no thread uses them. What was configured stays. */
void ebpfMonUsageRoomFree(ebpfMonUsageRoom *room);

#endif
