/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "host/procInfo.h"
#include "put/putRoom.h"

/* A name service answers within microseconds (files) or some milliseconds (LDAP). If it hangs the event thread waits
 * this long, once; meanwhile the event ring has room for the events of all IOCs. */
#define USER_NAME_DEADLINE 0.1 /* s */
#define USER_NAME_STOP     1.0 /* s */

int ebpfMonPutRoomMake(ebpfMonPutRoom *room, const ebpfMonPutRoomUses *uses)
{
    memset(room, 0, sizeof(*room));
    room->users = ebpfMonUserNamesNew(ebpfMonProcUser, USER_NAME_DEADLINE);
    room->clients = ebpfMonPutClientsNew(room->users, uses->findOwner);
    room->linkWrites = ebpfMonLinkWritesNew();
    room->join = ebpfMonPutJoinNew(uses->targets);
    if (room->join)
        ebpfMonPutJoinSetWakes(room->join, &uses->wakes);
    room->threadPuts = ebpfMonThreadPutsNew();
    room->iocPuts = ebpfMonIocPutsNew(uses->targets, room->clients, room->join, room->linkWrites, room->threadPuts,
                                      uses->losses, uses->audits, &uses->iocPuts);
    room->servers = ebpfMonServersNew(uses->targets, NULL);
    if (room->servers)
        room->otherServers = ebpfMonOtherServersNew(uses->targets, room->servers, uses->packetServers);
    room->packetPuts = ebpfMonPacketPutsNew(room->clients, room->linkWrites, uses->packetPut, uses->arg);
    room->packetEvents = ebpfMonPacketEventsNew(room->join, room->servers, room->packetPuts, uses->audits,
                                                &uses->packets, uses->canJoin);
    room->ownPuts = ebpfMonOwnPutsNew(room->clients, room->users, uses->losses, uses->watchSelf, uses->ownPut,
                                      uses->arg);
    if (room->users && room->clients && room->linkWrites && room->join && room->threadPuts && room->iocPuts &&
        room->otherServers && room->packetPuts && room->packetEvents && room->ownPuts)
        return 0;
    ebpfMonPutRoomFree(room);
    return -1;
}

void ebpfMonPutRoomFree(ebpfMonPutRoom *room)
{
    ebpfMonOwnPutsFree(room->ownPuts);
    ebpfMonPacketEventsFree(room->packetEvents);
    ebpfMonPacketPutsFree(room->packetPuts);
    ebpfMonOtherServersFree(room->otherServers);
    ebpfMonServersFree(room->servers);
    ebpfMonIocPutsFree(room->iocPuts);
    ebpfMonThreadPutsFree(room->threadPuts);
    ebpfMonPutJoinFree(room->join);
    ebpfMonLinkWritesFree(room->linkWrites);
    ebpfMonPutClientsFree(room->clients);
    ebpfMonUserNamesFree(room->users, USER_NAME_STOP); /* if the name service hangs, its thread and memory stay */
    memset(room, 0, sizeof(*room));
}
