/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For every record, which records its chain can reach: what the kernel part walks at a chain's end.
 *
 * The records are numbered in the order of a depth-first walk from the records that nothing else
 * processes. Then a chain, and every tree, is one run of that order, shared by all its sub-chains: memory
 * grows with the records, not with the square of a chain's length. Where paths join, the record gets a
 * list of its own. Works on numbers alone.
 */
#ifndef EBPFMON_CLOSURE_H
#define EBPFMON_CLOSURE_H

#include <stdint.h>

#define EBPFMON_NODE_TWICE   1 /* a chain can reach it by two ways and process it twice, or cannot look that far */
#define EBPFMON_NODE_PARTIAL 2 /* its own closure had to be cut: too large */

typedef struct {
    uint32_t  count;     /* entries of list in use */
    uint32_t *list;      /* record numbers: the order first, then the lists of their own */
    uint32_t *first;     /* by record: where its closure begins in list, and */
    uint32_t *len;       /* how long it is; at least 1, itself */
    uint8_t  *flags;     /* by record: EBPFMON_NODE_… */
    uint32_t  twice, partial; /* how many records are so */
} ebpfMonClosures;

/* edges of record i: to[start[i]] … to[start[i+1]-1]. At most "maxList" entries (at least n) and
 * "maxLen" records a closure. NULL without memory. */
ebpfMonClosures *ebpfMonClosuresMake(uint32_t n, const uint32_t *start, const uint32_t *to,
                                     uint32_t maxList, uint32_t maxLen);
void ebpfMonClosuresFree(ebpfMonClosures *c);

#endif
