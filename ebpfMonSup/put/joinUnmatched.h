/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides which puts that packets show will not be seen in an IOC any more, and which of these were sent for certain.
 * Used by putJoin only, under its lock. */
#ifndef EBPFMON_JOINUNMATCHED_H
#define EBPFMON_JOINUNMATCHED_H

#include "put/joinCircuits.h"
#include "watch/target.h"

/* Input and output of one look. Times are monotonic ns. */
typedef struct {
    ebpfMonTargets *targets;    /* NULL: each put to an IOC is seen inside */
    uint64_t        now;        /* UINT64_MAX: the end; no put waits any longer */
    uint64_t        eventsRead; /* all puts of IOCs from before that were read, and asked for their packets */
    uint64_t        packetsRead; /* all packets from before that were read */
    uint64_t        due;        /* found: when to look again; UINT64_MAX: not because of the time */
    uint64_t        events;     /* found: events must be read up to then; UINT64_MAX: none waits for that */
} ebpfMonJoinLook;

/* Learns whether the put came after the moment from which each put of its IOC is seen inside. */
void ebpfMonJoinUnmatchedJudge(ebpfMonTargets *targets, ebpfMonPacketPut *put);

/* Notes if the IOC has served a later message of the circuit. */
void ebpfMonJoinUnmatchedNotePassed(const ebpfMonJoinCircuit *circuit, ebpfMonPacketPut *put, uint64_t now);

/* A circuit of which must be known whether its server has read all that came, and that was not asked just now. NULL:
 * none. */
ebpfMonJoinCircuit *ebpfMonJoinUnmatchedGetAsked(const ebpfMonJoinCircuits *circuits, uint64_t now);

/* Takes all such puts out of the queues: a list, which the caller publishes and frees one by one. */
ebpfMonPacketPut *ebpfMonJoinUnmatchedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinLook *look);

#endif
