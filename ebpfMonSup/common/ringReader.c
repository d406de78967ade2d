/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/clock.h"
#include "common/duty.h"
#include "common/pace.h"
#include "common/ringReader.h"
#include "common/sharedWorker.h"

#define STOP_SECONDS 5.0
#define STOP_LOOK    0.01              /* s */
#define SILENCE_NS   EBPFMON_SILENT_NS /* it looks by itself so often, whatever was missed */
#define SILENCE      ((double)SILENCE_NS / 1e9)
#define MANY         64 /* entries found at a look: from then on each of two threads does its own work */

struct ebpfMonRingReader {
    ebpfMonRingReaderCalls calls; /* never change */
    void               *arg;      /* only for the thread that has the duty */
    ebpfMonSharedWorker worker;   /* any thread */
    ebpfMonDuty         duty;     /* to call "calls", except getFile and free; any thread */
    ebpfMonRingReader  *helped, *helper; /* never change while a thread runs; NULL: none */
    /* only for the thread */
    ebpfMonPace         pace;
    int                 hasDuty;
    int                 helps;    /* it has the duty of "helped" */
};

/* Nonzero: it has its duty, so entries need not wake it. 0: its helper does the work now, and leaves it then. */
static int takeDuty(ebpfMonRingReader *r)
{
    if (!r->hasDuty && ebpfMonDutyTakeOwn(&r->duty)) {
        r->hasDuty = 1;
        r->calls.endSleep(r->arg);
    }
    if (!r->hasDuty && r->helper)
        ebpfMonSharedWorkerWake(&r->helper->worker);
    return r->hasDuty;
}

/* From now on an entry wakes "helped", which goes on at once if one has come. */
static void stopHelping(ebpfMonRingReader *r)
{
    ebpfMonRingReader *helped = r->helped;
    int isEmpty;

    if (!r->helps)
        return;
    r->helps = 0;
    isEmpty = helped->calls.beginSleep(helped->arg);
    if (ebpfMonDutyLeave(&helped->duty, isEmpty ? helped->calls.getDue(helped->arg) : 0))
        ebpfMonSharedWorkerWake(&helped->worker);
}

/* Nonzero: this thread has the duty of "helped". */
static int takeOther(ebpfMonRingReader *r)
{
    if (!r->helps && r->helped)
        r->helps = ebpfMonDutyTake(&r->helped->duty);
    return r->helps;
}

/* "n": entries of its own that it has just found. If there are many, each thread has enough to do. But the entry that
 * woke this thread may be the reason that another one did not wake "helped", so this thread always looks once. */
static void doOtherWork(ebpfMonRingReader *r, unsigned n)
{
    ebpfMonRingReader *helped = r->helped;
    int expects;

    if (!takeOther(r))
        return;
    helped->calls.endSleep(helped->arg);
    if (helped->calls.read(helped->arg, &expects) > MANY || n > MANY || ebpfMonDutyIsWanted(&helped->duty))
        stopHelping(r);
}

/* The entry that woke this thread may be the reason that another one did not wake "helped", as in doOtherWork. */
void ebpfMonRingReaderStopHelping(ebpfMonRingReader *r)
{
    takeOther(r);
    stopHelping(r);
}

/* Returns the time (monotonic ns) at which the work that this thread does is due. */
static uint64_t findDue(ebpfMonRingReader *r)
{
    uint64_t due = r->calls.getDue(r->arg), other = r->helps ? r->helped->calls.getDue(r->helped->arg) : UINT64_MAX;

    return due < other ? due : other;
}

/* Returns the time (monotonic ns) at which the thread shall look at the latest. */
static uint64_t findLook(ebpfMonRingReader *r, uint64_t now)
{
    uint64_t due = findDue(r), first = now + EBPFMON_PACE_FIRST_NS, last = now + SILENCE_NS;

    return due < first ? first : due < last ? due : last;
}

static void sleepUntilWoken(ebpfMonRingReader *r, ebpfMonWorker *worker)
{
    uint64_t now, look;

    if (!r->calls.beginSleep(r->arg)) {
        r->calls.endSleep(r->arg);
        return;
    }
    stopHelping(r);
    now = ebpfMonClockMonotonic();
    look = findLook(r, now);
    r->hasDuty = !ebpfMonDutyLeaveOwn(&r->duty, look);
    if (r->hasDuty)
        r->calls.endSleep(r->arg);
    else
        ebpfMonWorkerWaitFile(worker, r->calls.getFile(r->arg), look - now);
}

static ebpfMonPaceFound findPace(const ebpfMonRingReader *r, int expects)
{
    if (!expects)
        return ebpfMonPaceNothing;
    return !r->calls.isIncomplete || r->calls.isIncomplete(r->arg) ? ebpfMonPaceMore : ebpfMonPaceWhole;
}

static void lookOnce(ebpfMonRingReader *r, ebpfMonWorker *worker)
{
    int expects;
    unsigned n = r->calls.read(r->arg, &expects);
    uint64_t next, now, wait;

    doOtherWork(r, n);
    now = ebpfMonClockMonotonic();
    next = ebpfMonPaceNext(&r->pace, findPace(r, expects), now);
    if (!next) {
        sleepUntilWoken(r, worker);
        return;
    }
    wait = findLook(r, now) - now;
    ebpfMonWorkerWaitFile(worker, r->calls.getFile(r->arg), next < wait ? next : wait);
}

static void runReader(ebpfMonWorker *worker, void *arg)
{
    ebpfMonRingReader *r = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        if (takeDuty(r))
            lookOnce(r, worker);
        else
            ebpfMonWorkerWait(worker, SILENCE);
    }
    stopHelping(r);
    while (!takeDuty(r)) /* its helper leaves it soon, but cannot wake a worker that is being stopped */
        ebpfMonWorkerWait(worker, STOP_LOOK);
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
    ebpfMonDutyInit(&r->duty);
    r->hasDuty = 1;
    return r;
}

void ebpfMonRingReaderHelp(ebpfMonRingReader *r, ebpfMonRingReader *helped)
{
    r->helped = helped;
    helped->helper = r;
}

void ebpfMonRingReaderFree(ebpfMonRingReader *r)
{
    if (!r)
        return;
    if (r->calls.free)
        r->calls.free(r->arg);
    ebpfMonSharedWorkerDestroy(&r->worker);
    ebpfMonDutyDestroy(&r->duty);
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
