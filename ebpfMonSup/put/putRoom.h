/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of the room put/, made once and connected to the other rooms. */
#ifndef EBPFMON_PUTROOM_H
#define EBPFMON_PUTROOM_H

#include "model/audits.h"
#include "model/packetServers.h"
#include "model/put.h"
#include "put/gateways.h"
#include "put/iocPuts.h"
#include "put/packetEvents.h"
#include "put/putClients.h"
#include "put/servers.h"
#include "wire/wireEvent.h"

/* --- servers that are no IOCs ---
 *
 * The servers of Channel Access and pvAccess on this host that are no IOCs for the monitor: they have no records of
 * EPICS Base, or a Base that is not recognised. They are listed with the IOCs, so that nobody takes them for watched or
 * for absent.
 *
 * Any process may listen at the port of a protocol, and may send a beacon that names the port of another one. So a
 * process is such a server only if packets prove it:
 * - it has accepted a connection, and answered in it by the protocol that a client has a channel. The connection must
 *   have been followed from its first byte, because later bytes may be the content of anything. Or
 * - it has sent a beacon from a socket of its own, for a port at which it listens.
 *
 * Packet thread only. /proc is read, so the caller holds no lock. */

typedef struct ebpfMonOtherServers ebpfMonOtherServers;

/* Adds a wire event; one that proves nothing is ignored. "now": monotonic ns, as below. */
void ebpfMonOtherServersAddEvent(ebpfMonOtherServers *others, const ebpfMonWireEvent *event, uint64_t now);

/* Sets the published rows, and logs a server that is new among them. Once a second. Forgets servers that have ended, or
 * do not listen any more. Leaves out what the follower watches, or may still find. Those whose IOC name matches
 * "filter" are listed in "known", too. */
void ebpfMonOtherServersPublish(ebpfMonOtherServers *others, const ebpfMonFilter *filter, uint64_t now);

/* --- puts to the monitor's own PVs ---
 *
 * Makes finished puts of the puts of clients to the monitor's own PVs (access/guard.h). */

typedef struct ebpfMonOwnPuts ebpfMonOwnPuts;

/* Publishes what has come, and returns the number of puts. Event thread; waits for user names (put/putClients.h). */
unsigned ebpfMonOwnPutsPublish(ebpfMonOwnPuts *puts);

/* Nonzero: this put was already published by ebpfMonOwnPutsPublish. It was seen once more, by a probe or in a packet,
 * because the monitor watches itself. */
int ebpfMonOwnPutsHas(const ebpfMonOwnPuts *puts, const ebpfMonPut *put);

/* --- the room --- */

/* What the room uses, and the sinks that it calls. The caller stays the owner. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonLosses      *losses;
    ebpfMonAudits      *audits;
    ebpfMonPacketServers *packetServers;
    ebpfMonOwnerFinder  findOwner;
    ebpfMonCertificateFinder findCertificate;
    int                 canJoin;   /* as ebpfMonPacketEventsNew has it */
    int                 watchSelf;
    ebpfMonIocPutSinks  iocPuts;
    ebpfMonPacketEventCalls packets;
    ebpfMonPutJoinWakes wakes;
    /* With "arg": a put that was seen in packets only (packet thread), and one of a client to our own PVs (event
     * thread). */
    ebpfMonPutSink      packetPut;
    void              (*heldPut)(void *arg, ebpfMonPut *put); /* of an IOC, made by a gateway (packet thread) */
    void              (*ownPut)(void *arg, ebpfMonPut *put);
    void               *arg;
} ebpfMonPutRoomUses;

typedef struct ebpfMonPutRoom {
    ebpfMonUserNames  *users;      /* any thread */
    ebpfMonPutClients *clients;    /* any thread; its header has exceptions */
    ebpfMonLinkWrites *linkWrites; /* any thread */
    ebpfMonPutJoin    *join;       /* any thread */
    ebpfMonThreadPuts *threadPuts; /* event thread */
    ebpfMonIocPuts    *iocPuts;    /* event thread */
    ebpfMonOwnPuts    *ownPuts;    /* event thread; ebpfMonOwnPutsHas: any thread */
    ebpfMonServers    *servers;    /* packet thread, as all that follows */
    ebpfMonOtherServers *otherServers;
    ebpfMonPacketPuts *packetPuts;
    ebpfMonGateways   *gateways;   /* as its header says */
    ebpfMonPacketEvents *packetEvents;
    ebpfMonPutJoinWakes wakes;     /* these three as in ebpfMonPutRoomUses */
    void (*heldPut)(void *arg, ebpfMonPut *put);
    void *arg;
} ebpfMonPutRoom;

/* 0, or -1 without memory: then nothing is left. */
int ebpfMonPutRoomMake(ebpfMonPutRoom *room, const ebpfMonPutRoomUses *uses);

/* Only while no thread uses them. */
void ebpfMonPutRoomFree(ebpfMonPutRoom *room);

#endif
