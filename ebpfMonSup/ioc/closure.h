/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closure of every record: the records that its chain can reach. The kernel part walks through it at a chain's end.
 *
 * The records are numbered in the order of a depth-first walk, which begins at records that no other record
 * processes. So the closure of a chain, or of a tree, is one range of this order, and all its parts share it: memory
 * grows with the number of records, not with the square of a chain's length. Where paths join, the record gets a
 * list of its own. This module works on numbers only: it needs no IOC.
 */
#ifndef EBPFMON_CLOSURE_H
#define EBPFMON_CLOSURE_H

#include <stdint.h>

#define EBPFMON_NODE_TWICE   1 /* a chain can reach it by two ways and process it twice, or cannot look that far */
#define EBPFMON_NODE_PARTIAL 2 /* its own closure had to be cut: too large */

typedef struct {
    uint32_t  count;     /* entries of list in use */
    uint32_t *list;      /* record numbers: the order first, then the lists of their own */
    uint8_t  *ahead;     /* by entry of list: how many of the next entries are in the same stretch of a scan list; NULL:
                          * there are no scan lists */
    uint32_t *first;     /* by record: where its closure begins in list, and */
    uint32_t *len;       /* how long it is; at least 1, itself */
    uint8_t  *flags;     /* by record: EBPFMON_NODE_… */
    uint32_t  twice, partial; /* how many records have these flags */
    void     *arrays;    /* the block of "first", "len" and "flags" */
} ebpfMonClosures;

/* edges of record i: to[start[i]] … to[start[i+1]-1]. At most "maxList" entries (at least n) and
 * "maxLen" records a closure. NULL without memory. */
ebpfMonClosures *ebpfMonClosuresMake(uint32_t n, const uint32_t *start, const uint32_t *to,
                                     uint32_t maxList, uint32_t maxLen);
void ebpfMonClosuresFree(ebpfMonClosures *c);

/* --- stretches ---
 *
 * Stretches of a chain: a row of records, each of which is processed by the forward link of the record before, and by
 * no other record. The time stamp of the last record is then enough for all of them. A record calls recGblFwdLink after
 * it has set its time stamp, so no time stamp is later than the last, and the last record cannot have processed without
 * the others. This module works on numbers only.
 */

#define EBPFMON_NO_RECORD UINT32_MAX

typedef struct {
    uint32_t n;
    uint32_t *order; /* by place: the record */
    uint32_t *place; /* by record */
    uint8_t  *ahead; /* by record: how many records of its stretch come after it; 0: the last, or in none */
    void     *arrays; /* the block of all of these */
} ebpfMonStretches;

/* "order": the records as the closures have them. Edges as of the closures. fwd[i]: the target of record i's
 * forward link, or EBPFMON_NO_RECORD. skip[i] nonzero: the time stamp does not show each processing, or record i may
 * process twice. No stretch is longer than "max" + 1 records. NULL without memory. */
ebpfMonStretches *ebpfMonStretchesMake(uint32_t n, const uint32_t *order, const uint32_t *start,
                                       const uint32_t *to, const uint32_t *fwd, const uint8_t *skip,
                                       unsigned max);
void ebpfMonStretchesFree(ebpfMonStretches *s);

/* The record before this one in its stretch, or EBPFMON_NO_RECORD. */
uint32_t ebpfMonStretchBefore(const ebpfMonStretches *s, uint32_t record);

#endif
