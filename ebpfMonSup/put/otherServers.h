/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The servers of Channel Access and pvAccess on this host that are no IOCs for the monitor: they have no records of
 * EPICS Base, or a Base that is not recognised. They are listed with the IOCs, so that nobody takes them for watched or
 * for absent.
 *
 * A process is such a server if packets prove it, because any process may listen at the port of a protocol, and any
 * process may send a beacon that names the port of another one:
 * - it has accepted a connection, and answered in it by the protocol that a client has a channel. The connection must
 *   have been followed from its first byte, because later bytes may be the content of anything. Or
 * - it has sent a beacon from a socket of its own, for a port at which it listens.
 *
 * Packet thread only. /proc is read, so the caller holds no lock.
 */
#ifndef EBPFMON_OTHERSERVERS_H
#define EBPFMON_OTHERSERVERS_H

#include "model/packetServers.h"
#include "put/servers.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonOtherServers ebpfMonOtherServers;

/* "known": gets the servers, and the names of their PVs. The arguments stay the caller's. NULL without memory. */
ebpfMonOtherServers *ebpfMonOtherServersNew(ebpfMonTargets *targets, ebpfMonServers *servers,
                                            ebpfMonPacketServers *known);
void ebpfMonOtherServersFree(ebpfMonOtherServers *others); /* NULL does no harm */

/* Adds a wire event; one that proves nothing is ignored. "now": monotonic ns, as below. */
void ebpfMonOtherServersAddEvent(ebpfMonOtherServers *others, const ebpfMonWireEvent *event, uint64_t now);

/* Sets the published rows, and logs a server that is new among them. Once a second. Forgets servers that have ended, or
 * do not listen any more. One that the follower watches, or that it may still find, is left out. Those whose IOC name
 * matches "filter" are listed in "known", too. */
void ebpfMonOtherServersPublish(ebpfMonOtherServers *others, const ebpfMonFilter *filter, uint64_t now);

#endif
