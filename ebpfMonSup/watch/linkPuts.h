/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recent puts to fields that decide which records a record makes process, or whether its time stamp shows a
 * processing. After such a put the follower reads the record again. If a later put changed the record before the
 * follower had read it, the first put is superseded: nobody has seen its effect, and all records that may have
 * processed by it are marked. This module has a lock of its own, held for a short time.
 */
#ifndef EBPFMON_LINKPUTS_H
#define EBPFMON_LINKPUTS_H

#include <stdint.h>

typedef struct {
    uint32_t iocId;
    uint32_t tid;     /* of the thread that makes it */
    uint64_t at;      /* monotonic ns: the IOC did not do the put before this time */
    uint64_t precord; /* 0: there is no such put */
    uint64_t pfldDes; /* the field */
    uint64_t target;  /* of a link: the record that it makes process after the put, 0: none of this IOC */
    uint64_t old;     /* of a link: the record that it made process before the put */
    uint8_t  isLink;
    uint8_t  isStamp; /* the field decides whether the time stamp shows each processing */
    uint8_t  stops;   /* isStamp: after this put it may not show each processing any more */
    uint8_t  isBrief; /* stops: until another put of any kind ends this, also one that is not noted here */
} ebpfMonLinkPut;

/* A record "from" that makes "to" process, or did so since the oldest put that is still noted. */
typedef struct {
    uint64_t from, to;
} ebpfMonLinkEdge;

typedef struct ebpfMonLinkPuts ebpfMonLinkPuts;

ebpfMonLinkPuts *ebpfMonLinkPutsNew(void);      /* NULL without memory */
void ebpfMonLinkPutsFree(ebpfMonLinkPuts *puts); /* NULL does no harm */

/* Any thread. Add puts in the order of their events; "now": monotonic ns. 0, or -1: there is no room, and this put is
 * not noted. */
int ebpfMonLinkPutsAdd(ebpfMonLinkPuts *puts, const ebpfMonLinkPut *put, uint64_t now);

/* --- The follower's side --- */

/* Since when the record may have links that were not read yet; UINT64_MAX: it has none. */
uint64_t ebpfMonLinkPutsGetOldest(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord);

/* The record's fields have been read, not before "readAt" (monotonic ns). "isDone" is called under the lock. Nonzero:
 * the fields that were read are as this put made them. Returns up to "max" puts that were superseded, and forgets them;
 * if it returns "max", there may be more. */
unsigned ebpfMonLinkPutsTake(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t readAt,
                             int (*isDone)(void *arg, const ebpfMonLinkPut *put), void *arg, ebpfMonLinkPut *superseded,
                             unsigned max);

/* Nonzero: the record must be read again. The IOC may not have done a put to one of its links yet (this can be up to a
 * minute after the monitor saw the put); or records of a superseded put may still process. */
int ebpfMonLinkPutsIsAwaited(ebpfMonLinkPuts *puts, uint32_t iocId, uint64_t precord, uint64_t now);

/* The links that puts to this IOC made or removed. At most "max"; returns their number. */
unsigned ebpfMonLinkPutsListEdges(ebpfMonLinkPuts *puts, uint32_t iocId, ebpfMonLinkEdge *edges, unsigned max);

#endif
