/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joins the puts that are seen in the IOC with those that are seen in packets: the same put is published once.
 *
 * Both sides name a put by its circuit and the TCP sequence number of its message. On one circuit both see the puts in
 * the same order, each side with a delay of its own. So each circuit has a queue of puts that were seen in packets and
 * not yet in the IOC, and a list of puts that were published without their packet.
 *
 * It has a lock of its own, held for a search in memory. All functions: any thread. The event thread uses those for the
 * IOC's side, the packet thread the others.
 */
#ifndef EBPFMON_PUTJOIN_H
#define EBPFMON_PUTJOIN_H

#include "put/finishedPut.h"
#include "watch/target.h"
#include "wire/wire.h"

typedef struct ebpfMonPutJoin ebpfMonPutJoin;

/* How one side wakes the thread of the other side, which waits until events or packets were read. Called without the
 * lock, on any thread. */
typedef struct {
    void (*wake)(void *thread); /* NULL: nobody is woken */
    void *events, *packets;     /* the two threads */
} ebpfMonPutJoinWakes;

/* "targets" stay the caller's. They say from when on each put of an IOC is seen inside (putsSince): a put whose packet
 * came later is published only when it is seen inside, or with evidence that it was lost. NULL: of all IOCs, always.
 * NULL without memory. */
ebpfMonPutJoin *ebpfMonPutJoinNew(ebpfMonTargets *targets);
/* Before other threads use it; without them nobody is woken. */
void ebpfMonPutJoinSetWakes(ebpfMonPutJoin *join, const ebpfMonPutJoinWakes *wakes);
void ebpfMonPutJoinFree(ebpfMonPutJoin *join); /* and the puts that wait */

/* --- the side of the IOC --- */

typedef enum {
    ebpfMonPutJoinAlone, /* the packets of this circuit are not read, or its packet will not come any more */
    ebpfMonPutJoinWait,  /* its packet is not read yet */
    ebpfMonPutJoinReply, /* its packet is found, and only the reply, which is not read yet, tells the result */
    ebpfMonPutJoinPublished,  /* it was published from its packet, when not each put of the IOC was seen inside; else as
                               * Found */
    ebpfMonPutJoinFound  /* its packet is found: "put" has what both sides know, "key" names its message */
} ebpfMonPutJoinResult;

/* "last": the put is published now in any case; a packet that comes later is known to be the same put. */
ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonPutJoin *join, ebpfMonMessageKey *key, ebpfMonPut *put, int last);

/* Nonzero: all packets that came to this host before this time (monotonic ns) have been read. Else the packet thread is
 * woken to read them, and the event thread once that is done. */
int ebpfMonPutJoinAwaitPackets(ebpfMonPutJoin *join, uint64_t until);

/* All puts of IOCs from before this time (monotonic ns) have been read, and asked for their packets. */
void ebpfMonPutJoinSetEventsRead(ebpfMonPutJoin *join, uint64_t at);

/* --- the side of the packets --- */

/* The network namespaces of which packets are read from now (monotonic ns) on. */
void ebpfMonPutJoinSetCovered(ebpfMonPutJoin *join, const uint32_t *netns, unsigned count, uint64_t now);
/* All packets from before this time (monotonic ns) have been read. */
void ebpfMonPutJoinSetPacketsRead(ebpfMonPutJoin *join, uint64_t at);

/* A put. "iocId": the IOC that serves it, 0: none is found; "pid": the process that does, 0: not known. "at": monotonic
 * ns when the packet came. */
void ebpfMonPutJoinAddPacket(ebpfMonPutJoin *join, const ebpfMonWireEvent *event, uint32_t iocId, pid_t pid,
                             const ebpfMonOldValue *old, uint64_t at);
/* The circuit "inner" is a translation of "outer" (packetEvents.h). Puts of "outer" that wait are removed. */
void ebpfMonPutJoinSetOuter(ebpfMonPutJoin *join, const struct ebpfMonPeer *inner, const struct ebpfMonPeer *outer,
                            uint64_t at);
/* A reply. Nonzero: its put, which is no call, still waits, and *old is the value that the PV had before it. */
int ebpfMonPutJoinAddReply(ebpfMonPutJoin *join, const ebpfMonWireEvent *event, ebpfMonOldValue *old, uint64_t at);
void ebpfMonPutJoinCloseCircuit(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint64_t at);
/* The name of a channel that was created before we looked is known now. */
void ebpfMonPutJoinNameChannel(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint32_t sid, const char *name);

/* Takes out the puts that will not be seen in an IOC any more at "now" (monotonic ns; UINT64_MAX: all): a list, which
 * the caller publishes and frees one by one. A put that should have been seen inside isDoubtful without evidence that
 * it was sent: a refusal, or the name of its channel, and also its reply, or that its circuit was followed from its
 * begin, or was found to agree with the IOC. */
ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(ebpfMonPutJoin *join, uint64_t now);
/* One of them is published now ("isReal"), or not, because nobody has made it: then a put that the IOC makes with this
 * number is another one. 0: it must not be published, because the IOC has made its own put meanwhile. */
int ebpfMonPutJoinSettleTaken(ebpfMonPutJoin *join, const ebpfMonPacketPut *taken, int isReal);

/* A circuit whose server must have read all that came before a put of it can be called lost. 0: there is none, or
 * it was asked a moment ago. The caller asks, and tells the answer: SetRead; "at": monotonic ns before it asked. */
int ebpfMonPutJoinGetAsked(ebpfMonPutJoin *join, uint64_t now, struct ebpfMonPeer *peer, uint32_t *iocId);
void ebpfMonPutJoinSetRead(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, int isRead, uint64_t at);

/* When to call TakeUnmatched again (monotonic ns); UINT64_MAX: when packets come, or the packet thread is woken. */
uint64_t ebpfMonPutJoinGetDue(ebpfMonPutJoin *join);

/* Nonzero: a put waits for its reply, or for the event of its IOC. */
int ebpfMonPutJoinHasWaiting(ebpfMonPutJoin *join);

/* Puts that were dropped because there was no room, since the start. */
uint64_t ebpfMonPutJoinCountDropped(ebpfMonPutJoin *join);

#endif
