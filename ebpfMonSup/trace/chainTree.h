/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who made whom process: a tree out of the records that one chain processed, their time stamps, and the links between
 * them. FLNK makes its target process after its own record was stamped, an input link before; other links do it before
 * or after, as their record support likes (fanout is stamped when all its links are done). Works on numbers alone.
 */
#ifndef EBPFMON_CHAINTREE_H
#define EBPFMON_CHAINTREE_H

#include <stdint.h>

#define EBPFMON_NO_PARENT UINT32_MAX

typedef struct {
    int64_t  time;   /* ns; when the record was stamped */
    uint32_t parent; /* node that made it process; EBPFMON_NO_PARENT: the root, or nobody that is known */
    uint32_t via;    /* the edge's */
    uint32_t depth;  /* of the root 0 */
} ebpfMonTreeNode;

typedef struct {
    uint32_t from, to; /* nodes: "from" has the link */
    uint32_t via;      /* the caller's mark */
    enum { ebpfMonTreeAfter, ebpfMonTreeBefore, ebpfMonTreeEither } when; /* "to" is stamped, against "from" */
} ebpfMonTreeEdge;

/* Fills in parent, via and depth of the nodes, which are in the order of their times, and "order" with the nodes as they
 * are to be read: each before those that it made process, those by their times. Of several links that could have done
 * it the one that is nearest in time did. 0, or -1: no memory. */
int ebpfMonTree(ebpfMonTreeNode *node, uint32_t nodes, uint32_t root, const ebpfMonTreeEdge *edge, uint32_t edges,
                uint32_t *order);

#endif
