/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that were seen in an IOC and wait: for their result, for the links of an IOC that starts, then for their packet.
 * All functions: event thread only; no lock may be held, for the sink is called.
 */
#ifndef EBPFMON_PENDINGPUTS_H
#define EBPFMON_PENDINGPUTS_H

#include "put/finishedPut.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/putDecode.h"
#include "put/putJoin.h"
#include "watch/target.h"

typedef struct ebpfMonPendingPut {
    struct ebpfMonPendingPut *next, *before; /* in its queue */
    uint32_t tid;
    uint64_t id;
    uint64_t since;    /* monotonic ns */
    uint64_t stillAt;  /* … when its thread was seen last to stand still before its result came; 0: it was not */
    uint32_t iocId;
    uint64_t lateAddr; /* the links of its IOC are not read yet: the DBADDR by which its link is found; 0: they are */
    int      isPublished;   /* it was published from its packet */
    int      awaitsReply; /* its packet is there, and only the reply tells the result */
    uint64_t linkAt;   /* it wrote to a link field, at this address: no event tells its result; 0: to another field */
    uint64_t lookAt;   /* … not before, that field is read */
    int      isShared; /* … and another thread wrote to it meanwhile: what is read does not tell whether it was
                        * refused */
    int      isAuthor; /* a client's put by a thread that serves several: what it causes has the same client … */
    uint64_t author;   /* … and it is caused by this put, as EBPFMON_PUT_NUMBER; 0: by none */
    ebpfMonPutPlace at;
    ebpfMonMessageKey key;
    ebpfMonPut put;
} ebpfMonPendingPut;

typedef struct ebpfMonPendingPuts ebpfMonPendingPuts;

/* "sink" receives each put once it is finished, with its texts. "missedReceive": see ebpfMonIocPutSinks. The others
 * stay the caller's. NULL without memory. */
ebpfMonPendingPuts *ebpfMonPendingPutsNew(ebpfMonTargets *targets, ebpfMonPutJoin *join, ebpfMonPutClients *clients,
                                          ebpfMonLinkWrites *linkWrites, int (*missedReceive)(void),
                                          ebpfMonPutSink sink, void *arg);
void ebpfMonPendingPutsFree(ebpfMonPendingPuts *pending);

/* A place for one put; if all are in use, the put that waits longest is published. The caller fills all but "next" and
 * "before", and gives it back by one of the three functions that follow. */
ebpfMonPendingPut *ebpfMonPendingPutsReserve(ebpfMonPendingPuts *pending);
void ebpfMonPendingPutsDiscard(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p);
void ebpfMonPendingPutsAwaitResult(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p);
/* All that is seen in the IOC is known. */
void ebpfMonPendingPutsComplete(ebpfMonPendingPuts *pending, ebpfMonPendingPut *p);

/* Before a put to a link field the field had this text ("link"; NULL: that is not known): it tells the result of an
 * earlier put to it. Call it before that put waits itself. */
void ebpfMonPendingPutsNoteLink(ebpfMonPendingPuts *pending, const struct ebpfMonPutEvent *ev, const char *link);

/* The put whose result has come, as its event names it; the caller completes it. NULL: none waits for that. */
ebpfMonPendingPut *ebpfMonPendingPutsTake(ebpfMonPendingPuts *pending, uint32_t tid, uint64_t id);

/* The time (monotonic ns) of the oldest put that waits; UINT64_MAX: none does. Those whose threads stand still do not
 * count: nobody can wait for them. */
uint64_t ebpfMonPendingPutsGetOldest(const ebpfMonPendingPuts *pending);

/* When ebpfMonPendingPutsTick is to be called (monotonic ns) even if nothing happens; UINT64_MAX: never. Something
 * happens when a result comes, when packets were read that it waits for, or when the links of an IOC were read. */
uint64_t ebpfMonPendingPutsGetDue(const ebpfMonPendingPuts *pending, uint64_t now);

/* Publishes the puts that have waited long enough at "now" (monotonic ns); with "all" every one. */
void ebpfMonPendingPutsTick(ebpfMonPendingPuts *pending, uint64_t now, int all);

#endif
