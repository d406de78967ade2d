/* SPDX-License-Identifier: BSD-3-Clause */
/* How large the tables of a query are. */
#ifndef EBPFMON_QUERYSIZES_H
#define EBPFMON_QUERYSIZES_H

#include <stddef.h>
#include "probe/queryOrder.h"

typedef struct {
    unsigned key, value;     /* bytes of one in "cells" */
    unsigned depth, stride;  /* calls in one another, a power of two; bytes of one */
    unsigned calls;          /* bytes of all those of a thread */
    unsigned callingThreads; /* … and so many threads; 1: no call is measured */
    unsigned waits;          /* threads that can wait for a CPU; 1: no wait is measured */
    unsigned sites;          /* places of USDT probes; 1: there are none */
    unsigned ring;           /* bytes */
    size_t   bytes;          /* of all tables on this host */
} ebpfMonQuerySizes;

void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *sizes);

#endif
