/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/handOvers.h"

#define TAKEN 64  /* whose chain has not come yet: it follows at once, but for what other threads say in between */
#define DONE  16384 /* a power of two. Also what is done for chains that sampling leaves out comes here */

static struct ebpfMonHandOverEvent taken[TAKEN];
static unsigned nextTaken;
/* The newest chain of its hash. */
static struct {
    ebpfMonChainId chain;
    uint32_t count;
} done[DONE];

void ebpfMonHandOversBegin(const struct ebpfMonHandOverEvent *ev)
{
    taken[nextTaken++ % TAKEN] = *ev;
}

const struct ebpfMonHandOver *ebpfMonHandOversFind(const struct ebpfMonChain *chain)
{
    for (unsigned i = 0; i < TAKEN; i++)
        if (taken[i].head.tid == chain->head.tid && taken[i].head.ktime == chain->head.ktime &&
            taken[i].head.iocId == chain->head.iocId)
            return &taken[i].what;
    return NULL;
}

static unsigned hash(const ebpfMonChainId *chain)
{
    return (unsigned)((chain->begin + chain->tid) * 0x9e3779b97f4a7c15ull >> 40) % DONE;
}

static int isSame(const ebpfMonChainId *a, const ebpfMonChainId *b)
{
    return a->begin == b->begin && a->tid == b->tid && a->iocId == b->iocId;
}

void ebpfMonHandOversEndEarly(const ebpfMonChainId *chain)
{
    unsigned i = hash(chain);

    if (!isSame(&done[i].chain, chain))
        done[i].count = 0;
    done[i].chain = *chain;
    done[i].count++;
}

uint32_t ebpfMonHandOversTakeEnded(const ebpfMonChainId *chain)
{
    unsigned i = hash(chain);
    uint32_t n = isSame(&done[i].chain, chain) ? done[i].count : 0;

    if (n)
        done[i].count = 0;
    return n;
}
