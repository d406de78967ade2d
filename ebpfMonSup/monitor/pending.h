/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that were seen inside and wait: for their result, then for what the wire knows. Event thread only. */
#ifndef EBPFMON_PENDING_H
#define EBPFMON_PENDING_H

#include "monitor/decode.h"
#include "monitor/join.h"

typedef struct ebpfMonPending {
    struct ebpfMonPending *next;
    uint32_t tid;
    uint64_t id;
    uint64_t since;   /* ns */
    uint32_t iocId;
    uint64_t early;   /* its IOC's links are not known yet: the DBADDR, to find the link with; 0: they are */
    uint64_t linkAt;  /* a link field: its result is looked up, 0: it is told */
    ebpfMonAfter at;
    ebpfMonJoinKey key;
    ebpfMonPut put;
} ebpfMonPending;

/* A place for one more; if there is none, the one that waits longest is published. To be handed back by one of the
 * following. */
ebpfMonPending *ebpfMonPendingNew(void);
void ebpfMonPendingDrop(ebpfMonPending *p);
void ebpfMonPendingResultAwaited(ebpfMonPending *p);
void ebpfMonPendingComplete(ebpfMonPending *p); /* all that the inside knows is there */

/* The one whose result this is, no longer waiting for it; NULL: none. */
ebpfMonPending *ebpfMonPendingTake(uint32_t tid, uint64_t id);

/* Publishes what waited long enough; "all": everything. */
void ebpfMonPendingTick(uint64_t now, int all);

#endif
