/* SPDX-License-Identifier: BSD-3-Clause */
/* The sizes of the tables of a query. */
#ifndef EBPFMON_QUERYSIZES_H
#define EBPFMON_QUERYSIZES_H

#include <stddef.h>
#include "probe/queryOrder.h"

typedef struct {
    unsigned key, value;     /* bytes of a key, and of a value in the table "cells" */
    unsigned depth, stride;  /* depth: nested calls of a thread that are kept, a power of two; stride: bytes for one
                              * call */
    unsigned calls;          /* bytes for all calls of a thread */
    unsigned callingThreads; /* threads that can be in a call; 1: the query measures no calls */
    unsigned waits;          /* threads that can wait for a CPU; 1: the query measures no waits */
    unsigned sites;          /* places of USDT probes; 1: the query has none */
    unsigned ring;           /* bytes of the ring */
    size_t   bytes;          /* bytes of all tables, on this host */
} ebpfMonQuerySizes;

/* Calculates the sizes for a query. Any thread. */
void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *sizes);

#endif
