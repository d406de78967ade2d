/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "put/putNumbers.h"

#define THREADS 1024 /* another thread with the same hash takes the place of one, which then begins anew */

typedef struct {
    uint32_t iocId, tid;
    uint64_t number, at; /* of its last put; monotonic ns */
} lastPut;

struct ebpfMonPutNumbers {
    uint64_t (*countLost)(void *arg);
    void    *arg;
    uint64_t lost;   /* when it was counted last */
    uint64_t lostAt; /* monotonic ns: when there were more than before. Those were lost until then, and some behind the
                      * event that was being read: it had waited in the ring */
    lastPut  last[THREADS];
};

ebpfMonPutNumbers *ebpfMonPutNumbersNew(uint64_t (*countLost)(void *arg), void *arg)
{
    ebpfMonPutNumbers *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->countLost = countLost;
    n->arg = arg;
    return n;
}

void ebpfMonPutNumbersFree(ebpfMonPutNumbers *n)
{
    free(n);
}

/* A lost event is counted before its thread sends the next one. Nonzero: events may have been lost after "since". */
static int hasLost(ebpfMonPutNumbers *n, uint64_t since)
{
    uint64_t now = ebpfMonClockMonotonic(), lost = n->countLost(n->arg);

    if (lost != n->lost)
        n->lostAt = now;
    n->lost = lost;
    return since <= n->lostAt;
}

uint64_t ebpfMonPutNumbersAdd(ebpfMonPutNumbers *n, uint32_t iocId, uint32_t tid, uint64_t number, uint64_t at)
{
    lastPut *last = &n->last[(tid ^ iocId * 2654435761u) % THREADS], before = *last;

    *last = (lastPut){ iocId, tid, number, at };
    /* a smaller one: another thread got this id */
    if (before.iocId != iocId || before.tid != tid || number <= before.number + 1 || hasLost(n, before.at))
        return 0;
    return number - before.number - 1;
}
