/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "common/pace.h"
#include "common/ringReader.h"
#include "common/sharedWorker.h"

#define STOP_SECONDS 5.0
#define SILENCE_NS   EBPFMON_SILENT_NS /* it looks by itself so often, whatever was missed */

struct ebpfMonRingReader {
    ebpfMonRingReaderCalls calls; /* never change */
    void               *arg;      /* only for the thread, while it runs */
    ebpfMonSharedWorker worker;   /* any thread */
    ebpfMonPace         pace;     /* only for the thread */
};

/* Returns the ns until work is due. */
static uint64_t findWait(ebpfMonRingReader *r)
{
    uint64_t now = ebpfMonClockMonotonic(), due = r->calls.getDue(r->arg), wait = due > now ? due - now : 0;

    return wait < EBPFMON_PACE_FIRST_NS ? EBPFMON_PACE_FIRST_NS : wait < SILENCE_NS ? wait : SILENCE_NS;
}

static void runReader(ebpfMonWorker *worker, void *arg)
{
    ebpfMonRingReader *r = arg;
    int file = r->calls.getFile(r->arg);

    while (!ebpfMonWorkerIsStopping(worker)) {
        int found = r->calls.read(r->arg) > 0;
        uint64_t next = ebpfMonPaceNext(&r->pace, found, ebpfMonClockMonotonic()), wait = findWait(r);

        if (next)
            ebpfMonWorkerWaitFile(worker, file, next < wait ? next : wait);
        else if (r->calls.beginSleep(r->arg))
            ebpfMonWorkerWaitFile(worker, file, wait);
        if (!next)
            r->calls.endSleep(r->arg);
    }
    r->calls.finish(r->arg);
}

ebpfMonRingReader *ebpfMonRingReaderNew(const ebpfMonRingReaderCalls *calls, void *arg)
{
    ebpfMonRingReader *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->calls = *calls;
    r->arg = arg;
    ebpfMonSharedWorkerInit(&r->worker);
    return r;
}

void ebpfMonRingReaderFree(ebpfMonRingReader *r)
{
    if (!r)
        return;
    if (r->calls.free)
        r->calls.free(r->arg);
    ebpfMonSharedWorkerDestroy(&r->worker);
    free(r);
}

int ebpfMonRingReaderStart(ebpfMonRingReader *r)
{
    return ebpfMonSharedWorkerSet(&r->worker,
                                  ebpfMonWorkerStart(r->calls.name, epicsThreadPriorityMedium, runReader, r));
}

int ebpfMonRingReaderStop(ebpfMonRingReader *r)
{
    return r ? ebpfMonSharedWorkerStop(&r->worker, STOP_SECONDS) : 0;
}

void ebpfMonRingReaderWake(void *reader)
{
    ebpfMonRingReader *r = reader;

    if (r)
        ebpfMonSharedWorkerWake(&r->worker);
}
