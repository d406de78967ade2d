/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A put that is seen in the IOC and on the wire is one put. Both sides name it by its connection and the TCP
 * sequence number of its message; on one connection both see puts in the same order, each with a delay of its own.
 * Inside: from the event thread; Wire: from the wire thread. Takes a lock of its own.
 */
#ifndef EBPFMON_JOIN_H
#define EBPFMON_JOIN_H

#include "ebpfMonEvent.h"
#include "model/put.h"

typedef struct {
    struct ebpfMonPeer peer;
    uint32_t seq;
    uint8_t  seqKind; /* enum ebpfMonSeq */
} ebpfMonJoinKey;

typedef enum {
    ebpfMonJoinAlone, /* nobody looks at the wire of this connection */
    ebpfMonJoinWait,  /* the wire has not told of it yet */
    ebpfMonJoinFound  /* it has: "put" has what both know */
} ebpfMonJoinResult;

ebpfMonJoinResult ebpfMonJoinInside(const ebpfMonJoinKey *key, ebpfMonPut *put);

/* It was published without: what the wire tells of it later is the same put. */
void ebpfMonJoinInsideDone(const ebpfMonJoinKey *key, const ebpfMonPut *put);

#endif
