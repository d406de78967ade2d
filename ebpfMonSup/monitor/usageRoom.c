/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/monitor.h"

static void onLook(void *arg)
{
    ebpfMonUsageRoom *room = arg;

    ebpfMonUseSourcesAddLook(room->notes, room->table);
}

static int areClientsRead(void *arg, uint32_t iocId)
{
    ebpfMonUsageRoom *room = arg;
    const ebpfMonClientIoc *ioc;
    int isRead = 0;

    ebpfMonClientTableLock(room->table);
    for (unsigned n = 0; (ioc = ebpfMonClientTableGet(room->table, n)) != NULL; n++)
        isRead |= ioc->id == iocId && ioc->isRead;
    ebpfMonClientTableUnlock(room->table);
    return isRead;
}

int ebpfMonUsageRoomMake(ebpfMonMonitor *m)
{
    ebpfMonUsageRoom *room = &m->usage;
    const ebpfMonUseKeeperCalls calls = { .areClientsRead = areClientsRead, .arg = room };

    room->notes = ebpfMonUseNotesNew();
    room->counts = ebpfMonUpdateCountsNew();
    if (room->counts)
        room->table = ebpfMonClientTableNew(m->targets, m->put.clients, room->counts);
    if (room->table)
        room->looker = ebpfMonClientLookerNew(room->table, onLook, room);
    if (room->notes)
        room->keeper = ebpfMonUseKeeperNew(m->targets, room->notes, &room->conf, &calls);
    if (room->looker && room->keeper)
        return 0;
    ebpfMonUsageRoomFree(room);
    return -1;
}

int ebpfMonUsageRoomStart(ebpfMonUsageRoom *room)
{
    return ebpfMonUseKeeperStart(room->keeper) || ebpfMonClientLookerStart(room->looker) ? -1 : 0;
}

int ebpfMonUsageRoomStop(ebpfMonUsageRoom *room)
{
    int left = ebpfMonClientLookerStop(room->looker);

    return left | ebpfMonUseKeeperStop(room->keeper);
}

void ebpfMonUsageRoomFree(ebpfMonUsageRoom *room)
{
    ebpfMonUsageConf conf = room->conf;

    ebpfMonUseKeeperFree(room->keeper);
    ebpfMonClientLookerFree(room->looker);
    ebpfMonClientTableFree(room->table);
    ebpfMonUpdateCountsFree(room->counts);
    ebpfMonUseNotesFree(room->notes);
    memset(room, 0, sizeof(*room));
    room->conf = conf;
}
