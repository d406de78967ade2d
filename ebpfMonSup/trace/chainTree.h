/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a tree of the records that one chain processed: below each record are those that it made process. The tree
 * follows from time stamps and links. FLNK makes its target process after its own record got its time stamp, an input
 * link before that; other links do it before or after, which depends on the record type (fanout gets its time stamp
 * when all its links are done). Works on numbers alone. Any thread.
 */
#ifndef EBPFMON_CHAINTREE_H
#define EBPFMON_CHAINTREE_H

#include <stdint.h>

#define EBPFMON_NO_PARENT UINT32_MAX

typedef struct {
    int64_t  time;   /* ns: the time stamp of the record */
    uint32_t parent; /* node that made it process; EBPFMON_NO_PARENT: it is the root, or it is not known which did */
    uint32_t via;    /* of the link that made it process */
    uint32_t depth;  /* of the root 0; of the others without parent 1 */
} ebpfMonTreeNode;

typedef struct {
    uint32_t from, to; /* nodes: "from" has the link */
    uint32_t via;      /* a number of the caller's, which becomes the node's */
    enum { ebpfMonTreeAfter, ebpfMonTreeBefore, ebpfMonTreeEither } when; /* "to" gets its time stamp after or before
                                                                             "from" does */
} ebpfMonTreeEdge;

/* Sets parent, via and depth of the nodes, which are in the order of their times, and fills "order" with the nodes as
 * they are to be read: a record stands before those that it made process, which follow in the order of their times. Of
 * several links that could have made a record process it takes the one that is nearest in time. 0, or -1: no memory. */
int ebpfMonTreeMake(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge, uint32_t edges,
                    uint32_t *order);

#endif
