/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client behind a gateway. A gateway is a process that is a server and a client: it makes a put of its own for
 * each put that a client makes to it. The put of the client ("outer") is seen in packets, that of the gateway ("inner")
 * in an IOC or in packets. They are one put if the outer one began before the inner one, its reply came after it, and
 * PV and value are the same. It is published once, as the put of the client; the outer one alone is published if no
 * inner one is seen. Through a channel that is older than the monitor the only one with this value is perhaps it; three
 * such puts tell the channel's name.
 *
 * The packet thread joins them. Others say which thread they belong to. No caller holds a lock.
 */
#ifndef EBPFMON_GATEWAYS_H
#define EBPFMON_GATEWAYS_H

#include <sys/types.h>

#include "model/put.h"
#include "put/finishedPut.h"
#include "put/putClients.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonGateways ebpfMonGateways;

typedef struct {
    void (*publish)(void *arg, ebpfMonPut *put); /* a put of ebpfMonGatewaysHold. Packet thread */
    void (*wake)(void *arg);                     /* the packet thread, because a put is held */
    void *arg;
    uid_t (*findPayer)(pid_t pid);               /* ebpfMonProcPayer; a test has one of its own */
} ebpfMonGatewayCalls;

/* "clients" stay the caller's; "calls" are copied. NULL without memory. */
ebpfMonGateways *ebpfMonGatewaysNew(ebpfMonPutClients *clients, const ebpfMonGatewayCalls *calls);
void ebpfMonGatewaysFree(ebpfMonGateways *gateways); /* NULL does no harm */

/* Before the threads start. isReal(arg, put): nonzero: a socket proves it. Any other outer put counts for nothing. */
void ebpfMonGatewaysSetProofs(ebpfMonGateways *gateways, int (*isReal)(void *arg, const ebpfMonPacketPut *put),
                              void *arg);

/* --- event thread --- */

/* A finished put that was seen in an IOC. Nonzero: its client may be a gateway; a copy is published later. */
int ebpfMonGatewaysHold(ebpfMonGateways *gateways, const ebpfMonPut *put);

/* --- packet thread --- */

/* A put to the process put->pid, which is no watched IOC. "put" has no data, and is copied; "pv": its channel without
 * .VAL, modifiers and filters; "text": its value. */
void ebpfMonGatewaysAddPut(ebpfMonGateways *gateways, const ebpfMonPacketPut *put, const char *pv, const char *text);
/* Any reply to a put. */
void ebpfMonGatewaysAddReply(ebpfMonGateways *gateways, const ebpfMonWireEvent *ev, uint64_t at);
/* This process is a client of a server of EPICS. */
void ebpfMonGatewaysAddClient(ebpfMonGateways *gateways, uint32_t pid);
/* Packets were not read, of all connections (pid 0) or of those to this process; "isGivenUp": one of them is not read
 * any more. */
void ebpfMonGatewaysNoteLost(ebpfMonGateways *gateways, pid_t pid, int isGivenUp, uint64_t at);

/* A finished put that was seen in packets only: sets its client, if that is a gateway. */
void ebpfMonGatewaysSetClient(ebpfMonGateways *gateways, ebpfMonPut *put);

/* An outer put is about to be published. Nonzero: the caller must not, and the packet put is not the caller's any more:
 * its inner one is published, or is waited for. "now": monotonic ns; UINT64_MAX: nobody waits any more. */
int ebpfMonGatewaysTake(ebpfMonGateways *gateways, ebpfMonPacketPut *put, uint64_t now);
/* One whose inner put was not seen: publish it now, and free it. NULL: there is none. */
ebpfMonPacketPut *ebpfMonGatewaysGive(ebpfMonGateways *gateways, uint64_t now);

/* All packets from before "read" (monotonic ns) were read: publishes the held puts that can be. "now" as above. */
void ebpfMonGatewaysPublish(ebpfMonGateways *gateways, uint64_t read, uint64_t now);
/* When to call the last two functions again (monotonic ns); UINT64_MAX: when packets come, or the thread is woken. */
uint64_t ebpfMonGatewaysGetDue(ebpfMonGateways *gateways);

#endif
