/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts that were seen inside and wait: for their result, then for what the wire knows. Event thread only. */
#ifndef EBPFMON_PENDINGPUTS_H
#define EBPFMON_PENDINGPUTS_H

#include "put/putDecode.h"
#include "put/putJoin.h"

typedef struct ebpfMonPendingPut {
    struct ebpfMonPendingPut *next;
    uint32_t tid;
    uint64_t id;
    uint64_t since;   /* ns */
    uint32_t iocId;
    uint64_t early;   /* its IOC's links are not known yet: the DBADDR, to find the link with; 0: they are */
    uint64_t linkAt;  /* a link field: its result is looked up, 0: it is told */
    ebpfMonPutPlace at;
    ebpfMonMessageKey key;
    ebpfMonPut put;
} ebpfMonPendingPut;

/* A place for one more; if there is none, the one that waits longest is published. To be handed back by one of the
 * following. */
ebpfMonPendingPut *ebpfMonPendingPutsNew(void);
void ebpfMonPendingPutsDrop(ebpfMonPendingPut *p);
void ebpfMonPendingPutsAwaitResult(ebpfMonPendingPut *p);
void ebpfMonPendingPutsComplete(ebpfMonPendingPut *p); /* all that the inside knows is there */

/* The one whose result this is, no longer waiting for it; NULL: none. */
ebpfMonPendingPut *ebpfMonPendingPutsTake(uint32_t tid, uint64_t id);

/* Publishes what waited long enough; "all": everything. */
void ebpfMonPendingPutsTick(uint64_t now, int all);

#endif
