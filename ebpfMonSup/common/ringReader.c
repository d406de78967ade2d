/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "common/ringReader.h"
#include "common/worker.h"

#define STOP_SECONDS 5.0

struct ebpfMonRingReader {
    ebpfMonRingReaderCalls calls; /* never change */
    void               *arg;      /* only for the thread */
    ebpfMonSharedWorker worker;   /* any thread */
    ebpfMonRingReader  *next;     /* never changes while a thread runs; NULL: none */
    int                 sleeps;   /* atomic */
    int                 isWoken;  /* only for the thread, as the next: it was woken, and has not looked since */
    uint64_t            wait;     /* ns from the last look to this one; 0: it slept in between */
};

/* Whoever took the wake-up from the entries of "next" did so before this look, or wakes this thread once more. */
static void wakeNext(const ebpfMonRingReader *r)
{
    const ebpfMonRingReader *next = r->next;

    if (next && __atomic_load_n(&next->sleeps, __ATOMIC_SEQ_CST) && next->calls.isAnnounced(next->arg))
        ebpfMonRingReaderWake(r->next);
}

/* Returns the time (ns) until the thread shall look at the latest. */
static uint64_t findWait(ebpfMonRingReader *r, uint64_t most)
{
    uint64_t now = ebpfMonClockMonotonic(), due = r->calls.getDue(r->arg);

    if (due < now + EBPFMON_READER_FIRST_NS)
        return EBPFMON_READER_FIRST_NS;
    return due - now < most ? due - now : most;
}

static void sleepUntilWoken(ebpfMonRingReader *r, ebpfMonWorker *worker)
{
    __atomic_store_n(&r->sleeps, 1, __ATOMIC_SEQ_CST); /* before an entry can be announced */
    r->isWoken = !r->calls.beginSleep(r->arg) ||
                 ebpfMonWorkerWaitFile(worker, r->calls.getFile(r->arg), findWait(r, EBPFMON_SILENT_NS));
    __atomic_store_n(&r->sleeps, 0, __ATOMIC_SEQ_CST);
    r->calls.endSleep(r->arg);
}

/* The wake-up rule: what woke the thread may be followed by more at once, so it looks soon again. From then on it looks
 * again as long as each look finds something. */
static uint64_t findNextLook(const ebpfMonRingReader *r, int expects)
{
    if (!r->wait)
        return expects || r->isWoken ? EBPFMON_READER_FIRST_NS : 0;
    return expects ? EBPFMON_READER_NEXT_NS : 0;
}

static void runReader(ebpfMonWorker *worker, void *arg)
{
    ebpfMonRingReader *r = arg;
    int expects;

    while (!ebpfMonWorkerIsStopping(worker)) {
        r->calls.read(r->arg, &expects);
        wakeNext(r);
        r->wait = findNextLook(r, expects);
        if (r->wait)
            ebpfMonWorkerWaitFile(worker, r->calls.getFile(r->arg), findWait(r, r->wait));
        else
            sleepUntilWoken(r, worker);
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

void ebpfMonRingReaderSetNext(ebpfMonRingReader *r, ebpfMonRingReader *next)
{
    r->next = next;
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
