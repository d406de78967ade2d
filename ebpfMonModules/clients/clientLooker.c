/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <epicsAtomic.h>
#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "model/published.h"
#include "clients/clientLooker.h"

#define EBPFMON_CLIENT_PERIOD 10.0 /* s */

#define STOP_SECONDS 5.0
#define START_SECONDS 0.2 /* between two questions whether the IOCs are found */

struct ebpfMonClientLooker {
    ebpfMonClientTable *table; /* fixed, as the next three */
    void (*publish)(void *arg);
    void (*looked)(void *arg);
    void *arg;
    ebpfMonSharedWorker worker;
    epicsMutexId asking;     /* held by the thread that waits for a look */
    epicsEventId lookDone;   /* wakes this thread */
    int          isAsked;    /* atomic: a look is requested */
};

ebpfMonClientLooker *ebpfMonClientLookerNew(ebpfMonClientTable *table, void (*publish)(void *arg),
                                            void (*looked)(void *arg), void *arg)
{
    ebpfMonClientLooker *looker = calloc(1, sizeof(*looker));

    if (!looker)
        return NULL;
    looker->table = table;
    looker->publish = publish;
    looker->looked = looked;
    looker->arg = arg;
    ebpfMonSharedWorkerInit(&looker->worker);
    looker->asking = epicsMutexMustCreate();
    looker->lookDone = epicsEventMustCreate(epicsEventEmpty);
    return looker;
}

void ebpfMonClientLookerFree(ebpfMonClientLooker *looker)
{
    if (!looker)
        return;
    ebpfMonSharedWorkerDestroy(&looker->worker);
    epicsMutexDestroy(looker->asking);
    epicsEventDestroy(looker->lookDone);
    free(looker);
}

static void giveSign(void *worker)
{
    ebpfMonWorkerGiveSign(worker);
}

static void readClients(ebpfMonClientLooker *looker, ebpfMonWorker *worker)
{
    int isAsked = epicsAtomicCmpAndSwapIntT(&looker->isAsked, 1, 0);

    ebpfMonClientTableLook(looker->table, giveSign, worker);
    looker->publish(looker->arg);
    looker->looked(looker->arg);
    if (isAsked)
        epicsEventMustTrigger(looker->lookDone);
}

/* Nonzero: the monitor has run for a second, so the IOCs of this host are found. Before, there would seem to be no
 * clients. */
static int areIocsFound(void)
{
    int isMeasured = ebpfMonPublishedLock()->isMeasured;

    ebpfMonPublishedUnlock();
    return isMeasured;
}

static void runLooker(ebpfMonWorker *worker, void *arg)
{
    ebpfMonClientLooker *looker = arg;
    double next = 0;

    while (!areIocsFound() && !epicsAtomicGetIntT(&looker->isAsked) && !ebpfMonWorkerIsStopping(worker))
        ebpfMonWorkerWait(worker, START_SECONDS);
    while (!ebpfMonWorkerIsStopping(worker)) {
        double now = ebpfMonClockSeconds();

        if (now >= next || epicsAtomicGetIntT(&looker->isAsked)) {
            readClients(looker, worker);
            next = ebpfMonClockSeconds() + EBPFMON_CLIENT_PERIOD;
        } else if (ebpfMonWorkerWait(worker, next - now) && !epicsAtomicGetIntT(&looker->isAsked)) {
            looker->publish(looker->arg);
        }
    }
}

int ebpfMonClientLookerStart(ebpfMonClientLooker *looker)
{
    return ebpfMonSharedWorkerSet(&looker->worker,
                                  ebpfMonWorkerStart("ebpfMonClients", epicsThreadPriorityLow, runLooker, looker));
}

int ebpfMonClientLookerStop(ebpfMonClientLooker *looker)
{
    return looker ? ebpfMonSharedWorkerStop(&looker->worker, STOP_SECONDS) : 0;
}

int ebpfMonClientLookerLook(ebpfMonClientLooker *looker, double seconds)
{
    int status;

    epicsMutexMustLock(looker->asking);
    epicsEventTryWait(looker->lookDone); /* clears the event of an earlier look that ended after its caller gave up */
    epicsAtomicSetIntT(&looker->isAsked, 1);
    ebpfMonSharedWorkerWake(&looker->worker);
    status = epicsEventWaitWithTimeout(looker->lookDone, seconds) == epicsEventOK ? 0 : -1;
    epicsMutexUnlock(looker->asking);
    return status;
}

void ebpfMonClientLookerRequest(ebpfMonClientLooker *looker)
{
    epicsAtomicSetIntT(&looker->isAsked, 1);
    ebpfMonSharedWorkerWake(&looker->worker);
}

void ebpfMonClientLookerPublish(ebpfMonClientLooker *looker)
{
    ebpfMonSharedWorkerWake(&looker->worker);
}
