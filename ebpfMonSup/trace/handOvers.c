/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "trace/handOvers.h"

#define THREADS    4096  /* a power of two: threads that work on something that was handed over */
#define NEAR       8     /* places in which a thread is looked for */
#define EARLY_ENDS 16384 /* a power of two; also for source chains that sampling leaves out, which never come */

/* What a thread is working on. */
typedef struct {
    struct ebpfMonHandOverEvent begin; /* ktime 0: the place is free */
    uint32_t chains;                   /* that came of it and arrived */
} workingThread;

typedef struct {
    ebpfMonChainId source;
    uint32_t count;
    int      isPartial;
} earlyEnd;

struct ebpfMonHandOvers {
    workingThread thread[THREADS]; /* by thread id; if there are too many, one that has said nothing for long is
                                    * forgotten */
    earlyEnd early[EARLY_ENDS];    /* by hash; the newest source chain of each hash */
};

ebpfMonHandOvers *ebpfMonHandOversNew(void)
{
    return calloc(1, sizeof(ebpfMonHandOvers));
}

void ebpfMonHandOversFree(ebpfMonHandOvers *handOvers)
{
    free(handOvers);
}

/* NULL: it is not known. */
static workingThread *findThread(const ebpfMonHandOvers *handOvers, const struct ebpfMonHead *head)
{
    for (unsigned i = 0; i < NEAR; i++) {
        const workingThread *thread = &handOvers->thread[(head->tid + i) % THREADS];

        if (thread->begin.head.tid == head->tid && thread->begin.head.iocId == head->iocId)
            return (workingThread *)thread;
    }
    return NULL;
}

/* The place of the thread; if it has none, the place of the thread whose last event is the oldest. */
static workingThread *getThread(ebpfMonHandOvers *handOvers, const struct ebpfMonHead *head)
{
    workingThread *thread = findThread(handOvers, head), *oldest = &handOvers->thread[head->tid % THREADS];

    if (thread)
        return thread;
    for (unsigned i = 1; i < NEAR; i++) {
        thread = &handOvers->thread[(head->tid + i) % THREADS];
        if (thread->begin.head.ktime < oldest->begin.head.ktime)
            oldest = thread;
    }
    return oldest;
}

static int isSameSource(const struct ebpfMonHandOverEvent *a, const struct ebpfMonHandOverEvent *b)
{
    return a->head.iocId == b->head.iocId && a->head.tid == b->head.tid &&
           a->what.source.begin == b->what.source.begin && a->what.source.tid == b->what.source.tid;
}

void ebpfMonHandOversNoteBegin(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev)
{
    workingThread *thread = getThread(handOvers, &ev->head);

    if (!isSameSource(&thread->begin, ev))
        thread->chains = 0;
    thread->begin = *ev;
}

const struct ebpfMonHandOver *ebpfMonHandOversFind(const ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain)
{
    const workingThread *thread = findThread(handOvers, &chain->head);

    return thread && thread->begin.head.ktime == chain->head.ktime ? &thread->begin.what : NULL;
}

void ebpfMonHandOversCountChain(ebpfMonHandOvers *handOvers, const struct ebpfMonChain *chain)
{
    workingThread *thread = findThread(handOvers, &chain->head);

    if (thread)
        thread->chains++;
}

int ebpfMonHandOversNoteEnd(ebpfMonHandOvers *handOvers, const struct ebpfMonHandOverEvent *ev)
{
    workingThread *thread = findThread(handOvers, &ev->head);
    uint32_t arrived = 0;

    if (thread && isSameSource(&thread->begin, ev)) {
        arrived = thread->chains;
        thread->chains = 0;
    }
    return ev->isPartial || arrived < ev->chains;
}

void ebpfMonHandOversNoteEarlyEnd(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int isPartial)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];

    if (!ebpfMonChainIdIsSame(&e->source, source))
        e->count = e->isPartial = 0;
    e->source = *source;
    e->count++;
    e->isPartial |= isPartial;
}

uint32_t ebpfMonHandOversTakeEarlyEnds(ebpfMonHandOvers *handOvers, const ebpfMonChainId *source, int *isPartial)
{
    earlyEnd *e = &handOvers->early[ebpfMonChainIdHash(source) % EARLY_ENDS];
    uint32_t count;

    *isPartial = 0;
    if (!ebpfMonChainIdIsSame(&e->source, source))
        return 0;
    count = e->count;
    *isPartial = e->isPartial;
    e->count = e->isPartial = 0;
    return count;
}
