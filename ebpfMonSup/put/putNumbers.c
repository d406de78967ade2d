/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "put/putNumbers.h"

#define THREADS 1024 /* another thread with the same hash takes the place of one, which then begins anew */

typedef struct {
    uint32_t iocId, tid;
    uint64_t number; /* of its last put */
} lastPut;

struct ebpfMonPutNumbers {
    uint64_t (*countLost)(void *arg);
    void    *arg;
    uint64_t lost;   /* when it was counted last */
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

/* An event that is lost is counted before the thread sends its next one. */
static int hasLost(ebpfMonPutNumbers *n)
{
    uint64_t lost = n->countLost(n->arg);
    int more = lost != n->lost;

    n->lost = lost;
    return more;
}

uint64_t ebpfMonPutNumbersAdd(ebpfMonPutNumbers *n, uint32_t iocId, uint32_t tid, uint64_t number)
{
    lastPut *last = &n->last[(tid ^ iocId * 2654435761u) % THREADS], before = *last;

    *last = (lastPut){ iocId, tid, number };
    /* a smaller one: another thread got this id */
    if (before.iocId != iocId || before.tid != tid || number <= before.number + 1 || hasLost(n))
        return 0;
    return number - before.number - 1;
}
