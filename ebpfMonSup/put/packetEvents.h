/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles wire events that concern puts: which puts are wanted, the old value of a PV, and which puts will not be seen
 * in an IOC any more. Packet thread only. The caller holds no lock, because sinks are called and /proc is read.
 */
#ifndef EBPFMON_PACKETEVENTS_H
#define EBPFMON_PACKETEVENTS_H

#include <stddef.h>
#include <stdint.h>

#include "model/audits.h"
#include "model/filter.h"
#include "put/finishedPut.h"
#include "put/gateways.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/putJoin.h"
#include "put/realCircuits.h"
#include "put/servers.h"
#include "wire/wireEvent.h"

/* --- puts of packets ---
 *
 * Makes finished puts of puts that were seen in packets only. Packet thread only; the caller holds no lock, because
 * /proc is read. */

typedef struct ebpfMonPacketPuts ebpfMonPacketPuts;

/* "sink" receives each put, with its texts; iocId, tid and id are 0. Targets, clients and links stay the caller's. NULL
 * without memory. */
ebpfMonPacketPuts *ebpfMonPacketPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                        ebpfMonLinkWrites *linkWrites, ebpfMonPutSink sink, void *arg);
void ebpfMonPacketPutsFree(ebpfMonPacketPuts *puts);

/* "packet": as ebpfMonPutJoinTakeUnmatched returns it; it stays the caller's. "server": the name of its server.
 * "missed": a watched IOC may have made the put and the monitor may have missed it, so the result is not LOST. */
void ebpfMonPacketPutsFinish(ebpfMonPacketPuts *puts, const ebpfMonPacketPut *packet, const char *server, int missed);

/* --- the values that clients read ---
 *
 * The last values that clients wrote to, or read from, the PVs of servers that are not watched IOCs. They are the old
 * values of the next puts. The number of PVs is limited; a PV may replace another one with the same hash. Packet thread
 * only. */

typedef struct ebpfMonLastValues ebpfMonLastValues;

ebpfMonLastValues *ebpfMonLastValuesNew(void); /* NULL without memory */
void ebpfMonLastValuesFree(ebpfMonLastValues *values);

/* A value was read (ebpfMonWireValue). */
void ebpfMonLastValuesSet(ebpfMonLastValues *values, const ebpfMonWireEvent *event);

/* A put: *old gets the last value; from now on the new value is the last one. */
void ebpfMonLastValuesExchange(ebpfMonLastValues *values, const ebpfMonWireEvent *event, ebpfMonOldValue *old);

/* The server of this connection ended, or may have ended: its PVs may begin anew. */
void ebpfMonLastValuesForgetServer(ebpfMonLastValues *values, const struct ebpfMonPeer *peer);

/* The server refused the put to which this is the reply: the last value is "old" again, unless another one came
 * since. */
void ebpfMonLastValuesRestore(ebpfMonLastValues *values, const ebpfMonWireEvent *reply, const ebpfMonOldValue *old);

/* --- values as text ---
 *
 * Values and names as packets carry them, as texts. No state. */

/* The value of a call: "call" and its arguments. */
void ebpfMonPacketTextFormatCall(const char *arguments, char *buf, size_t size);

/* Formats "have" bytes of the elements of a CA message, of a plain type (DBR_STRING 0 … DBR_DOUBLE 6). *isNumber: the
 * value is a single number, and *number has it; the index of an enum does not count as a number. Nonzero: it is a text,
 * or an array of texts. */
int ebpfMonPacketTextFormatCa(const uint8_t *data, uint32_t have, int baseType, uint32_t count, char *buf, size_t size,
                              int *isNumber, double *number);

/* Nonzero: the text is a number and nothing else. The texts "true" and "2 (Fast)" of PVA are no numbers here. */
int ebpfMonPacketTextIsNumber(const char *text);

/* Length of a channel's name without ".VAL", without an empty field, and without modifiers and filters of Base
 * (dbChannelCreate): all these names lead to the same field. */
size_t ebpfMonPacketTextGetNameLength(const char *channel);

/* --- events --- */

typedef struct ebpfMonPacketEvents ebpfMonPacketEvents;

/* All are called on the packet thread, with "arg". */
typedef struct {
    void (*getFilter)(void *arg, ebpfMonFilter *filter);
    /* Number of events of IOCs that were lost so far. If it grows, an IOC may have made a put that was not seen. */
    uint64_t (*countLost)(void *arg);
    /* In which namespace the client's socket of this circuit is; 0: not known, nor is its process *pid. */
    uint32_t (*findClient)(void *arg, const ebpfMonWireEvent *event, uint32_t *pid);
    /* Nonzero: the IOC has received data of the circuit of this put; and the put itself, if the packets say that it
     * answered. Anybody on the network can send packets that look like a put and its answer. */
    int (*isServed)(void *arg, const ebpfMonPacketPut *put);
    /* What sockets of this host tell of the circuit of a put (packetEvents.h). NULL: nothing, and all puts count. */
    ebpfMonFindReceived findReceived;
    /* Nonzero: a socket of this host has, or had, a connection with these first numbers. NULL: nobody can tell. */
    int (*hasBegun)(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first);
    /* Counts a put that they do not prove. */
    void (*countDropped)(void *arg, ebpfMonReal real);
    /* A put to a server that is not a watched IOC. "at": monotonic ns when its packet came. */
    void (*putElsewhere)(void *arg, const ebpfMonWireEvent *event, uint64_t at);
    void *arg;
} ebpfMonPacketEventCalls;

/* "canJoin": the kernel tells the message of a put in an IOC. Without this a packet cannot be joined with a put of an
 * IOC, and only the IOC's events count. All arguments stay the caller's; "calls" are copied. NULL without memory. */
ebpfMonPacketEvents *ebpfMonPacketEventsNew(ebpfMonPutJoin *join, ebpfMonServers *servers, ebpfMonPacketPuts *puts,
                                            ebpfMonGateways *gateways, ebpfMonAudits *audits,
                                            const ebpfMonPacketEventCalls *calls, int canJoin);
void ebpfMonPacketEventsFree(ebpfMonPacketEvents *events); /* NULL does no harm */

/* Adds a wire event; an event that does not concern puts is ignored. */
void ebpfMonPacketEventsAdd(ebpfMonPacketEvents *events, const ebpfMonWireEvent *event);

/* Nonzero: the same connection is seen a second time, with its server (put/packetEvents.h). */
int ebpfMonPacketEventsIsOuter(ebpfMonPacketEvents *events, const struct ebpfMonPeer *peer);

/* Checks whether events of IOCs were lost. Call it before packets are read. "now": monotonic ns. */
void ebpfMonPacketEventsNoteLost(ebpfMonPacketEvents *events, uint64_t now);

/* So many packets were not read so far. If there are more than before, the answer to a put may have been among them.
 * Once a second; "now": monotonic ns. */
void ebpfMonPacketEventsNotePacketsLost(ebpfMonPacketEvents *events, uint64_t count, uint64_t now);

/* Publishes the puts that will not be seen in an IOC any more at "now" (monotonic ns); at UINT64_MAX every one. */
void ebpfMonPacketEventsPublish(ebpfMonPacketEvents *events, uint64_t now);
/* When it must be called next, monotonic ns; UINT64_MAX: not because of the time. */
uint64_t ebpfMonPacketEventsGetDue(const ebpfMonPacketEvents *events);

#endif
