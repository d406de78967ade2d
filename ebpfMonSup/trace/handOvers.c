/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/handOvers.h"

#define BEGINS     64    /* whose chain has not come: it comes next, but other threads report in between */
#define EARLY_ENDS 16384 /* a power of two; also for source chains that sampling leaves out, which never come */

typedef struct {
    ebpfMonChainId source;
    uint32_t count;
} earlyEnd;

struct ebpfMonHandOvers {
    struct ebpfMonHandOverEvent begin[BEGINS];
    unsigned nextBegin;         /* modulo BEGINS the place that is overwritten next */
    earlyEnd early[EARLY_ENDS]; /* by hash; the newest source chain of each hash */
};

ebpfMonHandOvers *ebpfMonHandOversNew(void)
{
    return calloc(1, sizeof(ebpfMonHandOvers));
}

void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers)
{
    free(handOvers);
}

void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev)
{
    handOvers->begin[handOvers->nextBegin++ % BEGINS] = *ev;
}

const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain)
{
    for (unsigned i = 0; i < BEGINS; i++) {
        const struct ebpfMonHead *head = &handOvers->begin[i].head;

        if (head->tid == chain->head.tid && head->ktime == chain->head.ktime && head->iocId == chain->head.iocId)
            return &handOvers->begin[i].what;
    }
    return NULL;
}

void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];

    if (!ebpfMonChainIdIsSame(&e->source, source))
        e->count = 0;
    e->source = *source;
    e->count++;
}

uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];
    uint32_t count;

    if (!ebpfMonChainIdIsSame(&e->source, source))
        return 0;
    count = e->count;
    e->count = 0;
    return count;
}
