/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The puts of the last second to fields that decide what a record makes process, or whether its time stamp shows a
 * processing. The follower reads such a record again after a put. What a put made, and a later one changed before the
 * follower had read it, nobody has seen: such a put is superseded, and what may have processed by it is to be marked.
 * Has a lock of its own, held for short.
 */
#ifndef EBPFMON_LINKPUTS_H
#define EBPFMON_LINKPUTS_H

#include <stdint.h>

typedef struct {
    uint32_t iocId;
    uint32_t tid;     /* of the thread that makes it */
    uint64_t at;      /* monotonic ns: not done before */
    uint64_t precord; /* 0: there is no such put */
    uint64_t pfldDes; /* the field */
    uint64_t target;  /* of a link: the record that it makes process from then on, 0: none of this IOC */
    uint64_t old;     /* … and until then */
    uint8_t  isLink;
    uint8_t  isStamp; /* the field has to do with the time stamp, and */
    uint8_t  stops;   /* … after this put it may not show each processing any more */
    uint8_t  isBrief; /* … until any other put ends it, which need not be one of these */
} ebpfMonLinkPut;

/* A record that makes another one process, or did so since the oldest put that is not forgotten. */
typedef struct {
    uint64_t from, to;
} ebpfMonLinkEdge;

typedef struct ebpfMonLinkPuts ebpfMonLinkPuts;

ebpfMonLinkPuts *ebpfMonLinkPutsNew(void);      /* NULL without memory */
void ebpfMonLinkPutsFree(ebpfMonLinkPuts *puts); /* NULL does no harm */

/* Any thread. In the order of the events; "now": monotonic ns. 0, or -1: there are more than it holds, and this one is
 * not noted. */
int ebpfMonLinkPutsAdd(ebpfMonLinkPuts *puts, const ebpfMonLinkPut *put, uint64_t now);

/* --- The follower's side --- */

/* Since when the record may have links that were not read yet; UINT64_MAX: it has none. */
uint64_t ebpfMonLinkPutsGetOldest(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord);

/* The record's fields have been read, not before "readAt" (monotonic ns). "isDone", under the lock: nonzero, what was
 * read is what this put made. Returns up to "max" puts that were superseded, which are forgotten then; if "max", there
 * may be more. */
unsigned ebpfMonLinkPutsTake(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t readAt,
                             int (*isDone)(void *arg, const ebpfMonLinkPut *put), void *arg, ebpfMonLinkPut *superseded,
                             unsigned max);

/* Nonzero: the record is to be read again. A put to one of its links was not seen to be done, which may be up to a minute
 * after it was seen; or what it superseded may still process. */
int ebpfMonLinkPutsIsAwaited(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t now);

/* The links that the puts of an IOC made and ended. At most "max"; returns their number. */
unsigned ebpfMonLinkPutsListEdges(ebpfMonLinkPuts *puts, uint32_t iocId, ebpfMonLinkEdge *edges, unsigned max);

#endif
