/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles wire events that concern puts: which puts are wanted, the old value of a PV, and which puts will not be seen
 * in an IOC any more. Packet thread only. The caller holds no lock, because sinks are called and /proc is read.
 */
#ifndef EBPFMON_PACKETEVENTS_H
#define EBPFMON_PACKETEVENTS_H

#include "model/audits.h"
#include "model/filter.h"
#include "put/packetPuts.h"
#include "put/putJoin.h"
#include "put/realCircuits.h"
#include "put/servers.h"

typedef struct ebpfMonPacketEvents ebpfMonPacketEvents;

/* All are called on the packet thread, with "arg". */
typedef struct {
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Number of events of IOCs that were lost so far. If it grows, an IOC may have made a put that was not seen. */
    uint64_t (*countLost)(void *arg);
    /* In which namespace the client's socket of this circuit is; 0: not known. */
    uint32_t (*findClientNetns)(void *arg, const ebpfMonWireEvent *event);
    /* Nonzero: the IOC has received data of the circuit of this put; and the put itself, if the packets say that it
     * answered. Anybody on the network can send packets that look like a put and its answer. */
    int (*isServed)(void *arg, const ebpfMonPacketPut *put);
    /* What sockets of this host tell of the circuit of a put (realCircuits.h). NULL: nothing, and all puts count. */
    ebpfMonFindReceived findReceived;
    /* Counts a put that is not. */
    void (*countForged)(void *arg);
    /* A put to a server that is not a watched IOC. "at": monotonic ns when its packet came. */
    void (*putElsewhere)(void *arg, const ebpfMonWireEvent *event, uint64_t at);
    void *arg;
} ebpfMonPacketEventCalls;

/* "canJoin": the kernel tells the message of a put in an IOC. Without this a packet cannot be joined with a put of an
 * IOC, and only the IOC's events count. All arguments stay the caller's; "calls" are copied. NULL without memory. */
ebpfMonPacketEvents *ebpfMonPacketEventsNew(ebpfMonPutJoin *join, ebpfMonServers *servers, ebpfMonPacketPuts *puts,
                                            ebpfMonAudits *audits, const ebpfMonPacketEventCalls *calls, int canJoin);
void ebpfMonPacketEventsFree(ebpfMonPacketEvents *events); /* NULL does no harm */

/* Adds a wire event; an event that does not concern puts is ignored. */
void ebpfMonPacketEventsAdd(ebpfMonPacketEvents *events, const ebpfMonWireEvent *event);

/* Nonzero: the same connection is seen a second time, with its server (put/translated.h). */
int ebpfMonPacketEventsIsOuter(ebpfMonPacketEvents *events, const struct ebpfMonPeer *peer);

/* Checks whether events of IOCs were lost. Call it before packets are read. "now": monotonic ns. */
void ebpfMonPacketEventsNoteLost(ebpfMonPacketEvents *events, uint64_t now);

/* So many packets were not read so far. If there are more than before, the answer to a put may have been among them.
 * Once a second; "now": monotonic ns. */
void ebpfMonPacketEventsNotePacketsLost(ebpfMonPacketEvents *events, uint64_t count, uint64_t now);

/* Publishes the puts that will not be seen in an IOC any more at "now" (monotonic ns); at UINT64_MAX every one. */
void ebpfMonPacketEventsPublish(ebpfMonPacketEvents *events, uint64_t now);

#endif
