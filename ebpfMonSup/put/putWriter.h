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

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonEvent.h"
#include "ioc/linkTable.h"
#include "model/put.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/threadPuts.h"
#include "watch/target.h"

/* --- what a thread does ---
 *
 * What makes a thread of an IOC process a record, when it serves no client. Base names its threads by their job
 * (dbScan.c, callback.c, dbCa.c). What these functions need from the memory of the IOC is read
 * by ebpfMonTargetsGetReads. Call them under ebpfMonTargetsLock.
 *
 * CP links process records in the thread scanOnce, from Base 7.0.10 on in the thread dbCaLink. That one also makes the
 * puts of CA links to records of its own IOC. If a chain began with such a put, the caller gives no root. */

typedef struct {
    const char *comm;   /* the name of the thread */
    int         isMain; /* it is the first of its process */
    uint64_t    root;   /* address of the record that it began with; 0: not known */
    uint64_t    cpLink; /* address of the CP link (CA) that made it begin; 0: none did, or it is not known */
} ebpfMonThreadJob;

/* "scan .1 second", "I/O Intr", "Event", "callback in cbLow", "CP link from PV", "shell", "start-up", "thread NAME". */
void ebpfMonThreadJobDescribe(ebpfMonTarget *t, const ebpfMonThreadJob *job, char *buf, size_t size);

/* The PV to which the CP link (CA) at "at" leads. -1: it is none of the record at "precord", or was not read yet. */
long ebpfMonThreadJobReadCpLink(ebpfMonTarget *t, uint64_t precord, uint64_t at, char *name, size_t size);

/* SCAN of the record at this address, as its menu calls it. Empty: not known. */
void ebpfMonThreadJobReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size);

/* --- puts of links ---
 *
 * Puts after which a record may have to be counted in another way: to link fields, and to those that decide whether its
 * time stamp shows each processing. No state. Event thread, under ebpfMonTargetsLock. */

typedef struct {
    uint64_t precord; /* 0: there is no such put */
    uint64_t pfldDes; /* the field */
    int      isLink;
} ebpfMonLinkPut;

/* "ev": complete, as long as it says; "f": its field, NULL: not known; "put": with its values. change->precord is 0 if
 * the put is of another kind. Notes what may process uncounted until the follower has read the record
 * (ebpfMonTargetNoteUnseen). */
void ebpfMonLinkPutDecode(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const ebpfMonField *f,
                          const ebpfMonPut *put, ebpfMonLinkPut *change);

/* --- links that wrote lately ---
 *
 * The output links that somebody put a moment ago. The table of links (ioc/linkTable.h) is read again after such a put,
 * up to a second later. Until then a new link writes by an address that the table does not have, and the address of the
 * old link may belong to somebody else: dbChannel.c takes it from a list of free ones, so the next channel that a
 * client creates gets it. These links are looked at in the IOC when a put is seen. All functions: event thread only. */

typedef struct ebpfMonRecentLinks ebpfMonRecentLinks;

ebpfMonRecentLinks *ebpfMonRecentLinksNew(void); /* NULL without memory */
void ebpfMonRecentLinksFree(ebpfMonRecentLinks *recent); /* NULL does no harm */

/* A link field of this IOC was put at "at" (monotonic ns). Of more than it holds it forgets the oldest. */
void ebpfMonRecentLinksAdd(ebpfMonRecentLinks *recent, uint32_t iocId, ebpfMonLinkOwner link, uint64_t at);

/* Which link of "t" has this DBADDR, under the targets lock. "at": when a put was made by it. 0, or -1: none. */
int ebpfMonRecentLinksFind(ebpfMonRecentLinks *recent, ebpfMonTarget *t, uint64_t addr, uint64_t at,
                           ebpfMonLinkOwner *owner);

/* --- the writer of a put --- */

typedef struct ebpfMonPutWriters ebpfMonPutWriters;

/* The clients that an event names. */
typedef struct {
    int hasClient;      /* the thread serves "client" */
    int hasCauseClient; /* "causeClient" started what the put is a part of */
    ebpfMonPutClient client, causeClient;
} ebpfMonPutEventClients;

/* What it is made with stays the caller's. NULL without memory. */
ebpfMonPutWriters *ebpfMonPutWritersNew(ebpfMonTargets *targets, ebpfMonPutClients *clients,
                                        ebpfMonLinkWrites *linkWrites, const ebpfMonThreadPuts *threadPuts);
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
