/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "access/guard.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "ioc/catalogue.h"
#include "put/putRoom.h"
#include "put/valueText.h"

/* --- puts to the monitor's own PVs --- */

struct ebpfMonOwnPuts {
    ebpfMonPutClients *clients;               /* these three are the caller's */
    ebpfMonUserNames  *users;
    ebpfMonLosses     *losses;
    int               watchSelf;
    void            (*publish)(void *arg, ebpfMonPut *put);
    void             *arg;
    char              ioc[EBPFMON_NAME_SIZE]; /* our own name as an IOC */
    uint32_t          netns;                  /* … and network namespace */
    ebpfMonGuardedPut from;                   /* these two are the one in hand: too large for the stack */
    ebpfMonPut        put;
};

/* "publish" gets each put, with its texts. "watchSelf": the monitor is a target, too. Clients, users and losses stay
 * the caller's. NULL without memory. */
static ebpfMonOwnPuts *newOwnPuts(ebpfMonPutClients *clients, ebpfMonUserNames *users, ebpfMonLosses *losses,
                                  int watchSelf, void (*publish)(void *arg, ebpfMonPut *put), void *arg)
{
    ebpfMonOwnPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->clients = clients;
    puts->users = users;
    puts->losses = losses;
    puts->watchSelf = watchSelf;
    puts->publish = publish;
    puts->arg = arg;
    puts->netns = (uint32_t)ebpfMonProcNetns(getpid());
    if (ebpfMonProcIocName(getpid(), puts->ioc, sizeof(puts->ioc)) < 0)
        snprintf(puts->ioc, sizeof(puts->ioc), "ebpfMon");
    return puts;
}

static void freeOwnPuts(ebpfMonOwnPuts *puts)
{
    free(puts);
}

static void setSent(const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    /* db_access.h: DBR_STRING … DBR_DOUBLE */
    static const int types[] = {ebpfMonDbfString, ebpfMonDbfShort, ebpfMonDbfFloat, ebpfMonDbfEnum, ebpfMonDbfUchar,
                                ebpfMonDbfLong, ebpfMonDbfDouble};
    ebpfMonValue value = { .data = from->data, .len = from->have, .size = EBPFMON_MAX_STRING, .count = from->count };

    put->count = from->count;
    put->oldCount = -1;
    if (from->type < 0) { /* over PVA the sent value is not known: the value of the field is taken for it, unless the
                           * put was refused */
        snprintf(put->val, sizeof(put->val), "%s", from->hasAfter ? from->after : "?");
        return;
    }
    value.type = types[from->type];
    ebpfMonValueTextFormat(NULL, NULL, 0, &value, put->val, sizeof(put->val));
    put->isText = ebpfMonValueTextIsText(&value);
    put->isNumber = ebpfMonValueTextGetNumber(&value, &put->number);
    if (from->hasAfter && strcmp(from->after, put->val) != 0)
        snprintf(put->after, sizeof(put->after), "%s", from->after);
}

static void setClient(ebpfMonOwnPuts *puts, const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    const ebpfMonPeerUser *user = &from->client.user;
    const struct ebpfMonPeer peer = {
        .addr = user->peer.sin_addr.s_addr, .port = user->peer.sin_port,
        .saddr = user->here.sin_addr.s_addr, .sport = user->here.sin_port,
        .netns = puts->netns,
    };
    ebpfMonPutClient client;

    ebpfMonPutClientsFind(puts->clients, &peer, NULL, from->user, from->host, &client);
    if (user->kind == ebpfMonPeerLocal) {
        client.peerUid = user->uid;
        ebpfMonUserNamesFind(puts->users, user->uid, client.realUser, sizeof(client.realUser));
    }
    ebpfMonPutClientSet(&client, put);
}

static void setOwnResult(const ebpfMonGuardedPut *from, ebpfMonPut *put)
{
    if (!from->isAllowed) {
        put->result = ebpfMonPutDenied;
        snprintf(put->message, sizeof(put->message), "%s", from->why);
    } else if (from->type >= 0 && from->hasOld && from->hasAfter && strcmp(from->old, from->after) == 0 &&
               strcmp(put->val, from->after) != 0) {
        put->result = ebpfMonPutUnknown; /* asTrapWrite tells no status, and the field is as it was */
    } else {
        put->result = ebpfMonPutOk;
    }
}

static void finishOwnPut(ebpfMonOwnPuts *puts)
{
    const ebpfMonGuardedPut *from = &puts->from;
    ebpfMonPut *put = &puts->put;

    memset(put, 0, sizeof(*put));
    put->time = from->time;
    put->at = from->at;
    put->seen = EBPFMON_SEEN_INSIDE;
    put->through = from->client.server == ebpfMonClientPva ? ebpfMonByPva : ebpfMonByCa;
    snprintf(put->ioc, sizeof(put->ioc), "%s", puts->ioc);
    snprintf(put->pv, sizeof(put->pv), "%.*s", (int)sizeof(put->pv) - 1, from->pv);
    if (strcmp(from->channel, from->pv) != 0)
        snprintf(put->channel, sizeof(put->channel), "%s", from->channel);
    put->hasOld = from->hasOld;
    snprintf(put->old, sizeof(put->old), "%s", from->old);
    setSent(from, put);
    setClient(puts, from, put);
    setOwnResult(from, put);
    ebpfMonWriterTextComplete(put);
    puts->publish(puts->arg, put);
}

unsigned ebpfMonOwnPutsPublish(ebpfMonOwnPuts *puts)
{
    unsigned n = 0;

    for (unsigned lost = ebpfMonGuardedPutsTakeLost(); lost > 0; lost--)
        ebpfMonLossesAdd(puts->losses, ebpfMonLossOwnPut);
    for (; ebpfMonGuardedPutsTake(&puts->from); n++)
        finishOwnPut(puts);
    return n;
}

int ebpfMonOwnPutsHas(const ebpfMonOwnPuts *puts, const ebpfMonPut *put)
{
    return puts->watchSelf && (put->through == ebpfMonByCa || put->through == ebpfMonByPva) &&
           strcmp(put->ioc, puts->ioc) == 0 && ebpfMonGuardHasPv(put->pv);
}

/* --- the room --- */

/* A name service answers within microseconds (files) or some milliseconds (LDAP). If it hangs the event thread waits
 * this long, once; meanwhile the event ring has room for the events of all IOCs. */
#define USER_NAME_DEADLINE 0.1 /* s */
#define USER_NAME_STOP     1.0 /* s */

static void publishHeld(void *arg, ebpfMonPut *put)
{
    const ebpfMonPutRoom *room = arg;

    room->heldPut(room->arg, put);
}

static void wakePackets(void *arg)
{
    const ebpfMonPutRoom *room = arg;

    if (room->wakes.wake)
        room->wakes.wake(room->wakes.packets);
}

int ebpfMonPutRoomMake(ebpfMonPutRoom *room, const ebpfMonPutRoomUses *uses)
{
    const ebpfMonGatewayCalls gateways = { .publish = publishHeld, .wake = wakePackets, .arg = room };

    memset(room, 0, sizeof(*room));
    room->wakes = uses->wakes;
    room->heldPut = uses->heldPut;
    room->arg = uses->arg;
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
    room->gateways = ebpfMonGatewaysNew(room->clients, &gateways);
    if (room->gateways)
        room->packetEvents = ebpfMonPacketEventsNew(room->join, room->servers, room->packetPuts, room->gateways,
                                                    uses->audits, &uses->packets, uses->canJoin);
    room->ownPuts = newOwnPuts(room->clients, room->users, uses->losses, uses->watchSelf, uses->ownPut,
                                      uses->arg);
    if (room->users && room->clients && room->linkWrites && room->join && room->threadPuts && room->iocPuts &&
        room->otherServers && room->packetPuts && room->packetEvents && room->ownPuts)
        return 0;
    ebpfMonPutRoomFree(room);
    return -1;
}

void ebpfMonPutRoomFree(ebpfMonPutRoom *room)
{
    freeOwnPuts(room->ownPuts);
    ebpfMonPacketEventsFree(room->packetEvents);
    ebpfMonGatewaysFree(room->gateways);
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
