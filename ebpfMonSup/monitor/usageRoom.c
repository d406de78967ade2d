/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/monitor.h"

int ebpfMonUsageRoomMake(ebpfMonMonitor *m)
{
    ebpfMonUsageRoom *room = &m->usage;

    memset(room, 0, sizeof(*room));
    room->table = ebpfMonClientTableNew(m->targets, m->put.clients);
    if (room->table)
        room->looker = ebpfMonClientLookerNew(room->table, NULL, NULL);
    if (room->looker)
        return 0;
    ebpfMonUsageRoomFree(room);
    return -1;
}

void ebpfMonUsageRoomFree(ebpfMonUsageRoom *room)
{
    ebpfMonClientLookerFree(room->looker);
    ebpfMonClientTableFree(room->table);
    memset(room, 0, sizeof(*room));
}
