/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last puts of each thread of the watched IOCs. The next chain of a thread may have begun with its last put, and
 * its hand-overs may belong to the client that made one of these puts. All functions: event thread only.
 */
#ifndef EBPFMON_THREADPUTS_H
#define EBPFMON_THREADPUTS_H

#include "ebpfMonEvent.h"
#include "put/finishedPut.h"
#include "put/putClients.h"

/* --- authors ---
 *
 * Whose puts those of a thread were that serves several clients, when that is known. A link that such a put made write,
 * or a later step of a record that it started, has the same author, and no packet of its own. Event thread only. */

/* Names a put: its thread, and the low half of its id there. */
#define EBPFMON_PUT_NUMBER(tid, id) ((uint64_t)(tid) << 32 | (uint32_t)(id))

typedef struct ebpfMonPutAuthors ebpfMonPutAuthors;

ebpfMonPutAuthors *ebpfMonPutAuthorsNew(void); /* NULL without memory */
void ebpfMonPutAuthorsFree(ebpfMonPutAuthors *authors);

/* The put of a client is finished. "other": the client, if it is another one than the thread seemed to serve; NULL: it
 * is that one. */
void ebpfMonPutAuthorsAdd(ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, const ebpfMonPut *put,
                          const ebpfMonPutClient *other);

/* Sets the client of a put that put "number" caused, if that is certain. It stays as it is if that put is forgotten:
 * some hundred are known. */
void ebpfMonPutAuthorsSet(const ebpfMonPutAuthors *authors, uint32_t iocId, uint64_t number, ebpfMonPut *put);

/* --- puts of threads --- */

#define EBPFMON_THREAD_PUTS_BEFORE 4

typedef struct {
    uint64_t at;       /* monotonic ns; 0: none */
    uint64_t precord;  /* address of the record in the IOC */
    uint32_t seq;      /* of the message, if isMessage */
    uint8_t  isMessage;
    char     who[80];  /* "put by U@H"; empty: not made by a client */
} ebpfMonThreadPutSeen;

typedef struct {
    uint32_t iocId, tid;
    uint64_t id;               /* of the last put, as its event has it */
    ebpfMonThreadPutSeen seen; /* the last put */
    ebpfMonThreadPutSeen before[EBPFMON_THREAD_PUTS_BEFORE]; /* those before it, in any order */
    unsigned next;             /* counts writes into "before" */
    int      byClient;         /* a client made the last put */
    int      isFinished;       /* "put" is valid */
    ebpfMonPutSummary put;     /* of the last put */
} ebpfMonThreadPut;

typedef struct ebpfMonThreadPuts ebpfMonThreadPuts;

ebpfMonThreadPuts *ebpfMonThreadPutsNew(void); /* NULL without memory */
void ebpfMonThreadPutsFree(ebpfMonThreadPuts *puts);

/* A put was seen in an IOC. "who": as in ebpfMonThreadPutSeen. Puts that cannot begin a chain are left out. */
void ebpfMonThreadPutsAdd(ebpfMonThreadPuts *puts, const struct ebpfMonPutEvent *ev, const char *who);

/* The put of this event is finished. Nothing happens if its thread has made another one since. */
void ebpfMonThreadPutsFinish(ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid, uint64_t id,
                             const ebpfMonPutSummary *put);

/* The put that this chain began with, "root" being the address of the chain's root. NULL: no put, or one that is
 * forgotten. Valid until the next call that is not a Find. */
const ebpfMonThreadPut *ebpfMonThreadPutsFindForChain(const ebpfMonThreadPuts *puts, const struct ebpfMonChain *chain,
                                                      uint64_t root);

/* Nonzero: a put to "root" began the chain that this thread began at "begin" (monotonic ns). */
int ebpfMonThreadPutsHaveBegun(const ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid, uint64_t root,
                               uint64_t begin);

/* The record to which the thread's last put was made, if it came by the same message of Channel Access and to another
 * record. A message makes one put: so the put of this event is a routine's, which that record has called. Else 0. */
uint64_t ebpfMonThreadPutsFindOwner(const ebpfMonThreadPuts *puts, const struct ebpfMonPutEvent *ev);

/* The last put of this thread that can begin a chain, as EBPFMON_PUT_NUMBER; 0: none. */
uint64_t ebpfMonThreadPutsGetNumber(const ebpfMonThreadPuts *puts, uint32_t iocId, uint32_t tid);

/* The client ("put by U@H") whose put began the source chain of a hand-over. Empty: no client, or not known. */
const char *ebpfMonThreadPutsFindWriter(const ebpfMonThreadPuts *puts, uint32_t iocId,
                                        const struct ebpfMonSourceChain *source);

#endif
