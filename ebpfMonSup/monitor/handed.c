/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/handed.h"

#define TAKEN 64  /* whose chain has not come yet: it follows at once, but for what other threads say in between */
#define DONE  256

static struct ebpfMonHandEvent taken[TAKEN];
static unsigned nextTaken;
static ebpfMonChainId done[DONE];
static unsigned nextDone;

void ebpfMonHandedTaken(const struct ebpfMonHandEvent *ev)
{
    taken[nextTaken++ % TAKEN] = *ev;
}

const struct ebpfMonHanded *ebpfMonHandedOf(const struct ebpfMonChain *chain)
{
    for (unsigned i = 0; i < TAKEN; i++)
        if (taken[i].head.tid == chain->head.tid && taken[i].head.ktime == chain->head.ktime &&
            taken[i].head.iocId == chain->head.iocId)
            return &taken[i].what;
    return NULL;
}

void ebpfMonHandedDoneEarly(const ebpfMonChainId *chain)
{
    done[nextDone++ % DONE] = *chain;
}

uint32_t ebpfMonHandedWasDone(const ebpfMonChainId *chain)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < DONE; i++)
        if (done[i].begin == chain->begin && done[i].tid == chain->tid && done[i].iocId == chain->iocId) {
            memset(&done[i], 0, sizeof(done[i]));
            n++;
        }
    return n;
}
