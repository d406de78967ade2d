/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room usage/, made once and connected to the other rooms. */
#ifndef EBPFMON_USAGEROOM_H
#define EBPFMON_USAGEROOM_H

#include "usage/clientLooker.h"
#include "usage/clientReport.h"

struct ebpfMonMonitor;

typedef struct {
    ebpfMonClientTable  *table;  /* any thread */
    ebpfMonClientLooker *looker; /* any thread */
} ebpfMonUsageRoom;

/* Makes m->usage, when m->targets and m->put are made. 0, or -1 without memory: then nothing is left. */
int ebpfMonUsageRoomMake(struct ebpfMonMonitor *m);

/* Only while no thread uses them. */
void ebpfMonUsageRoomFree(ebpfMonUsageRoom *room);

#endif
