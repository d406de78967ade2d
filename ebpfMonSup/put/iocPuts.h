/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes finished puts of the put events that the kernel part sends. All functions: event thread only. The caller holds
 * no lock, because sinks are called, /proc is read, and a user name may take a short time (putClients.h).
 */
#ifndef EBPFMON_IOCPUTS_H
#define EBPFMON_IOCPUTS_H

#include <stdint.h>

#include "model/audits.h"
#include "put/finishedPut.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/putDecode.h"
#include "put/putJoin.h"
#include "put/threadPuts.h"
#include "watch/target.h"

/* --- puts that wait for their result or their packet ---
 *
 * Puts that were seen in an IOC and wait: for their result, for the links of an IOC that starts, then for their packet.
 * All functions: event thread only; no lock may be held, for the sink is called. */

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
    ebpfMonPutAddress at;
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

/* When ebpfMonPendingPutsTick is to be called (monotonic ns) even if nothing happens; UINT64_MAX: never. Something
 * happens when a result comes, when packets were read that it waits for, or when the links of an IOC were read. */
uint64_t ebpfMonPendingPutsGetDue(const ebpfMonPendingPuts *pending, uint64_t now);

/* Publishes the puts that have waited long enough at "now" (monotonic ns); with "all" every one. */
void ebpfMonPendingPutsTick(ebpfMonPendingPuts *pending, uint64_t now, int all);

/* --- numbers of puts ---
 *
 * Finds puts that were missed: each thread of an IOC numbers its puts, so a gap in the numbers is a put that was not
 * seen. Event thread only. */

typedef struct ebpfMonPutNumbers ebpfMonPutNumbers;

/* "countLost": number of events that were lost so far; their numbers are missing for this reason. NULL without
 * memory. */
ebpfMonPutNumbers *ebpfMonPutNumbersNew(uint64_t (*countLost)(void *arg), void *arg);
void ebpfMonPutNumbersFree(ebpfMonPutNumbers *numbers); /* NULL does no harm */

/* The put with this number has come; "at": monotonic ns when it was made. Returns how many before it are missing for no
 * known reason. */
uint64_t ebpfMonPutNumbersAdd(ebpfMonPutNumbers *numbers, uint32_t iocId, uint32_t tid, uint64_t number, uint64_t at);

/* --- events --- */

typedef struct ebpfMonIocPuts ebpfMonIocPuts;

/* The sinks. All are called on the event thread, with "arg". */
typedef struct {
    ebpfMonPutSink finished;
    void (*linkWritten)(void *arg, const ebpfMonLinkWrite *write); /* a record wrote through a CA link */
    void (*linkChanged)(void *arg, uint32_t iocId, uint64_t precord); /* the links of the record must be read again */
    uint64_t (*countLost)(void *arg); /* events of the kernel part that were lost so far */
    int (*missedReceive)(void); /* nonzero: a receive of a thread may not have been seen in the last seconds. NULL:
                                 * all are seen */
    void *arg;
} ebpfMonIocPutSinks;

/* All arguments stay the caller's; the sinks are copied. NULL without memory. */
ebpfMonIocPuts *ebpfMonIocPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, ebpfMonPutJoin *join,
                                  ebpfMonLinkWrites *linkWrites, ebpfMonThreadPuts *threadPuts, ebpfMonLosses *losses,
                                  ebpfMonAudits *audits, const ebpfMonIocPutSinks *sinks);
void ebpfMonIocPutsFree(ebpfMonIocPuts *puts);

/* Add one event; "size": its bytes. An event that is too short is ignored. */
void ebpfMonIocPutsAddPut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size);
void ebpfMonIocPutsAddResult(ebpfMonIocPuts *puts, const struct ebpfMonResultEvent *ev, size_t size);
void ebpfMonIocPutsAddCause(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size);
void ebpfMonIocPutsAddLinkWrite(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size);

/* Calls the function of these four that fits the kind of the event. 0: the event is not about puts. */
int ebpfMonIocPutsAddEvent(ebpfMonIocPuts *puts, const struct ebpfMonHead *head, size_t size);

/* The time (monotonic ns) of the oldest put that is not finished yet; UINT64_MAX: all are. */
uint64_t ebpfMonIocPutsGetOldest(const ebpfMonIocPuts *puts);

/* When to call ebpfMonIocPutsTick even if nothing happens (monotonic ns): see ebpfMonPendingPutsGetDue. */
uint64_t ebpfMonIocPutsGetDue(const ebpfMonIocPuts *puts, uint64_t now);

/* Publishes the puts that have waited long enough at "now" (monotonic ns); with "all" every one. */
void ebpfMonIocPutsTick(ebpfMonIocPuts *puts, uint64_t now, int all);

#endif
