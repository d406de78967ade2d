/* SPDX-License-Identifier: BSD-3-Clause */
/* Who wrote, through what, and why. ebpfMonPutWriterFind…: event thread, under ebpfMonTargetsLock; Peer and Text: any thread. */
#ifndef EBPFMON_PUTWRITER_H
#define EBPFMON_PUTWRITER_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "put/linkWrites.h"
#include "watch/target.h"

/* All of "put" that tells the author. "cause": who began what this put is the second half of; NULL: nobody else.
 * Afterwards put->pv and the values may still be missing: nothing here depends on them. */
void ebpfMonPutWriterFind(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const struct ebpfMonCauseEvent *cause,
                   ebpfMonPut *put);

/* A record of "t" sends a value through a CA link. Nonzero: it is known which. */
int ebpfMonPutWriterFindLinkWrite(ebpfMonTarget *t, const struct ebpfMonCauseEvent *ev, ebpfMonLinkWrite *link);

/* A client of which only the connection is known, as with puts that are seen on the wire alone. */
void ebpfMonPutWriterSetClient(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner, const char *user,
                       const char *host, ebpfMonPut *put);

/* "put by U@H"; empty: by no client. */
void ebpfMonPutWriterDescribeClient(const ebpfMonPut *put, char *buf, size_t size);

/* SCAN of a record, as its menu calls it; empty: not known. */
void ebpfMonPutWriterReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size);

/* What set a thread of the IOC going that is no client's, when it processes the chain of the record "root". */
void ebpfMonPutWriterDescribeThread(ebpfMonTarget *t, const char *comm, int isMainThread, uint64_t root, char *buf, size_t size);

/* A put of an IOC that was starting, whose links were not read when it came: through which of them it was made. */
void ebpfMonPutWriterFindLateLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put);

/* put->who and put->origin, from the rest. */
void ebpfMonPutWriterMakeTexts(ebpfMonPut *put);

#endif
