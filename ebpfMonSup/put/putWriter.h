/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds writer, origin and cause of a put that was seen in an IOC. All functions: event thread only.
 *
 * It takes two steps, because the targets lock stops the whole monitor. ebpfMonPutWritersLookUp runs without this lock:
 * it reads /proc, and waits a little for user names (putClients.h). The other functions run under ebpfMonTargetsLock.
 * What they need from the memory of the IOC is read by ebpfMonTargetsGetReads (host/lateReads.h).
 */
#ifndef EBPFMON_PUTWRITER_H
#define EBPFMON_PUTWRITER_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "put/linkPutDecode.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/threadPuts.h"
#include "watch/target.h"

typedef struct ebpfMonPutWriters ebpfMonPutWriters;

/* The clients that an event names. */
typedef struct {
    int hasClient;      /* the thread serves "client" */
    int hasCauseClient; /* "causeClient" started what the put is a part of */
    ebpfMonPutClient client, causeClient;
} ebpfMonPutEventClients;

/* What it is made with stays the caller's. NULL without memory. */
ebpfMonPutWriters *ebpfMonPutWritersNew(ebpfMonPutClients *clients, ebpfMonLinkWrites *linkWrites,
                                        const ebpfMonThreadPuts *threadPuts);
void ebpfMonPutWritersFree(ebpfMonPutWriters *writers);

/* "cause": who began the asynchronous processing that this put completes; NULL: none. No lock may be held. */
void ebpfMonPutWritersLookUp(ebpfMonPutWriters *writers, const struct ebpfMonHead *head, const struct ebpfMonWho *who,
                             const struct ebpfMonCauseEvent *cause, ebpfMonPutEventClients *clients);

/* Sets all members of "put" that tell the writer, the origin and the cause. It needs none of the others. */
void ebpfMonPutWritersFind(ebpfMonPutWriters *writers, ebpfMonTarget *t, const struct ebpfMonPutEvent *ev,
                           const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients,
                           ebpfMonPut *put);

/* A record of "t" writes through a CA link. Nonzero: the link is known, and *write is set. */
int ebpfMonPutWritersFindLinkWrite(const ebpfMonPutWriters *writers, ebpfMonTarget *t,
                                   const struct ebpfMonCauseEvent *ev, const ebpfMonPutEventClients *clients,
                                   ebpfMonLinkWrite *write);

/* Notes a put to a field of "t" that may be a link. Call it before the puts that follow. */
void ebpfMonPutWritersAddLink(ebpfMonPutWriters *writers, ebpfMonTarget *t, const ebpfMonLinkPut *change,
                              uint64_t at);

/* The links of an IOC that starts are read after its first puts. Corrects a put that was seen before: "addr" is the
 * address of the DBADDR that it was made with. */
void ebpfMonPutWritersFindLateLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put);

#endif
