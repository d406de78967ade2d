/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the packets tell of puts: which are wanted, what a PV had before, which will not be seen in an IOC any more.
 * Packet thread only. No lock may be held, for sinks are called and /proc is read.
 */
#ifndef EBPFMON_PACKETEVENTS_H
#define EBPFMON_PACKETEVENTS_H

#include "model/filter.h"
#include "put/packetPuts.h"
#include "put/putJoin.h"
#include "put/servers.h"

typedef struct ebpfMonPacketEvents ebpfMonPacketEvents;

/* All are called on the packet thread, with "arg". */
typedef struct {
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Events of IOCs that were lost so far: while they grow, a put that is not seen may have been made. */
    uint64_t (*countLost)(void *arg);
    /* A put to a server that is no watched IOC. "at": monotonic ns when its packet came. */
    void (*putElsewhere)(void *arg, const ebpfMonWireEvent *event, uint64_t at);
    void *arg;
} ebpfMonPacketEventCalls;

/* "canJoin": the kernel tells the message of a put in an IOC. Without that a packet cannot be matched with it, and only
 * the IOC's events count. All that it is made with stays the caller's; "calls" are copied. NULL without memory. */
ebpfMonPacketEvents *ebpfMonPacketEventsNew(ebpfMonPutJoin *join, ebpfMonServers *servers, ebpfMonPacketPuts *puts,
                                            const ebpfMonPacketEventCalls *calls, int canJoin);
void ebpfMonPacketEventsFree(ebpfMonPacketEvents *events); /* NULL does no harm */

/* An event of the wire; those that are about no put are left out. */
void ebpfMonPacketEventsAdd(ebpfMonPacketEvents *events, const ebpfMonWireEvent *event);

/* Looks whether events of IOCs were lost. To be called before packets are read. "now": monotonic ns. */
void ebpfMonPacketEventsNoteLost(ebpfMonPacketEvents *events, uint64_t now);

/* Publishes the puts that will not be seen in an IOC any more at "now" (monotonic ns); at UINT64_MAX every one. */
void ebpfMonPacketEventsPublish(ebpfMonPacketEvents *events, uint64_t now);

#endif
