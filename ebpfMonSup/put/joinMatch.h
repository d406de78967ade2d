/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the put of the packets that is the same as a put seen in the IOC, and the reverse. Used by putJoin only, under
 * its lock. */
#ifndef EBPFMON_JOINMATCH_H
#define EBPFMON_JOINMATCH_H

#include "put/joinCircuits.h"
#include "wire/wireEvent.h"

/* How a put that was seen in packets was found. */
typedef struct {
    ebpfMonJoinCircuit *circuit;
    ebpfMonPacketPut *put;      /* NULL: none */
    int isGroup;                /* a PVA group: the put stays in the queue for its other members */
    int isUnsure;               /* another client may have made the put, too */
    int isPast;                 /* none, and packets behind its message were read already */
} ebpfMonJoinMatch;

/* Looks for the packet of a put that was seen in the IOC. "last": the put is published now in any case. */
void ebpfMonJoinMatchFind(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                          int last, ebpfMonJoinMatch *match);

/* Copies what only the packet shows of a put. "isGroup": the packet is of its group. */
void ebpfMonJoinMatchMerge(const ebpfMonPacketPut *packet, int isGroup, ebpfMonPut *put);

/* A put seen in the IOC is published without its packet: notes this until the packet comes. */
void ebpfMonJoinPublishedAdd(ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put);

/* Nonzero: the put of this packet was already published as a put seen in the IOC. Removes the note. "at": monotonic ns
 * when the packet came. */
int ebpfMonJoinPublishedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit, const ebpfMonWireEvent *ev,
                             uint64_t at);

#endif
