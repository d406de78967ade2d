/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <epicsSignal.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "export/otlp/otlpQueries.h"
#include "export/otlp/otlpThread.h"

#define TICK 0.2 /* s */

/* Under the lock of the published values. */
static void copyHealth(ebpfMonOtlpNumbers *n, const ebpfMonPublished *published)
{
    const ebpfMonHealth *h = &published->health;

    n->unexpected = published->unexpected.count;
    n->state = published->state;
    n->gone = h->gone;
    n->hangs = h->hangs;
    n->lateScans = h->lateCount;
    n->restarts = h->restarts;
    n->processes = h->iocs;
    for (unsigned i = 0; i < h->iocs; i++) {
        strcpy(n->process[i].name, h->ioc[i].name);
        n->process[i].cpu = h->ioc[i].cpu;
        n->process[i].mem = h->ioc[i].mem;
    }
}

/* Copies the published numbers and those of the senders. */
static void readNumbers(ebpfMonOtlpOwn *own)
{
    ebpfMonOtlpNumbers *n = &own->numbers;
    const ebpfMonPublished *published;
    struct timespec t;

    n->now = ebpfMonClockReal();
    published = ebpfMonPublishedLock();
    n->putIocs = published->puts.iocCount;
    memcpy(n->putIoc, published->puts.ioc, published->puts.iocCount * sizeof(n->putIoc[0]));
    n->losses = published->losses.kinds < EBPFMON_LOSSES_MAX ? published->losses.kinds : EBPFMON_LOSSES_MAX;
    for (unsigned i = 0; i < n->losses; i++) {
        strcpy(n->lost[i].reason, published->losses.by[i].reason);
        n->lost[i].count = published->losses.by[i].count;
    }
    n->cost = isnan(published->costs.iocs) ? 0 : published->costs.iocs;
    n->cpu = published->costs.cpu;
    n->mem = published->costs.memory;
    n->iocs = published->iocs.count;
    for (unsigned i = 0; i < n->iocs; i++) {
        const ebpfMonIocRow *row = &published->iocs.ioc[published->iocs.gone + i];

        strcpy(n->ioc[i].name, row->name);
        n->ioc[i].records = row->records;
        n->ioc[i].cost = row->cost;
        n->ioc[i].processings = row->procCount;
    }
    copyHealth(n, published);
    n->roots = published->chains.slowestCount;
    memcpy(n->chain, published->chains.slowest, published->chains.slowestCount * sizeof(n->chain[0]));
    strcpy(n->root, published->chains.selectedRoot);
    memcpy(n->hist, published->chains.hist, sizeof(n->hist));
    memcpy(n->edge, published->chains.histEdge, sizeof(n->edge));
    epicsTimeToTimespec(&t, &published->time[ebpfMonGroupChains]);
    n->counted = (uint64_t)t.tv_sec * EBPFMON_SECOND_NS + (uint64_t)t.tv_nsec;
    ebpfMonPublishedUnlock();
    n->sent = 0;
    n->drops = ebpfMonOtlpReasons;
    for (unsigned r = 0; r < ebpfMonOtlpReasons; r++) {
        n->drop[r].reason = ebpfMonOtlpReasonNames[r];
        n->drop[r].count = 0;
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            n->drop[r].count += own->sender[i].counts.lost[r];
    }
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        n->sent += own->sender[i].counts.sent;
}

static void makeMetrics(ebpfMonOtlp *o, double now)
{
    ebpfMonOtlpOwn *own = &o->own;
    unsigned points = 0;
    size_t len;

    readNumbers(own);
    ebpfMonOtlpQueriesRead(&own->numbers, o->results);
    len = ebpfMonOtlpWriteMetrics(&own->json, &own->numbers, &own->exemplars, &own->sinces, own->metrics,
                                  sizeof(own->metrics), &points);
    ebpfMonExemplarClear(&own->exemplars, own->numbers.counted);
    ebpfMonOtlpSenderSetBatch(&own->sender[ebpfMonOtlpMetrics], &own->conf, own->metrics, len, points, now);
}

static void onDone(void *arg, ebpfMonOtlpSignal signal, const ebpfMonHttpResult *result)
{
    ebpfMonOtlpOwn *own = &((ebpfMonOtlp *)arg)->own;

    ebpfMonOtlpSenderFinishRequest(&own->sender[signal], result, &own->conf, own->endBy, ebpfMonClockSeconds());
}

/* Does what the commands want. Nonzero: they wanted something. */
static int applyCommands(ebpfMonOtlp *o)
{
    ebpfMonOtlpOwn *own = &o->own;
    int changed;

    epicsMutexMustLock(o->lock);
    changed = o->generation != own->generation;
    own->generation = o->generation;
    if (changed)
        own->conf = o->wanted;
    for (unsigned i = 0; i < ebpfMonOtlpSignals && changed; i++) /* under the lock, because a command may be making
                                                                  * one */
        own->sender[i].queue = o->queue[i];
    if (o->stopping && !own->endBy) { /* try again to send what waits, and send the last values */
        own->endBy = o->stopBy;
        own->nextMetrics = 0;
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            own->sender[i].out.retryAt = 0;
    }
    epicsMutexUnlock(o->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals && changed; i++) {
        ebpfMonOtlpSender *sender = &own->sender[i];

        sender->signal = (ebpfMonOtlpSignal)i;
        sender->exemplars = own->conf.target[ebpfMonOtlpMetrics].url[0] ? &own->exemplars : NULL;
        ebpfMonOtlpSenderSetTarget(sender, o->http, &own->conf);
        own->nextMetrics = 0;
    }
    return changed;
}

/* Makes batches and requests. Nonzero: nothing waits any more. */
static int sendAll(ebpfMonOtlp *o)
{
    ebpfMonOtlpOwn *own = &o->own;
    double now = ebpfMonClockSeconds();
    int idle = 1;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) /* spans come before the metrics, because they may be exemplars
                                                       * of these */
        if (own->conf.target[i].url[0])
            ebpfMonOtlpSenderReadQueue(&own->sender[i], &own->conf, now);
    if (own->conf.target[ebpfMonOtlpMetrics].url[0] && now >= own->nextMetrics &&
        !own->sender[ebpfMonOtlpMetrics].inFlight) {
        makeMetrics(o, now);
        own->nextMetrics = now + own->conf.interval;
    }
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!own->conf.target[i].url[0])
            continue;
        ebpfMonOtlpSenderPostBatch(&own->sender[i], o->http, own->endBy > 0, now);
        idle &= ebpfMonOtlpSenderIsIdle(&own->sender[i]);
    }
    return idle;
}

/* Ends: what still waits is lost. */
static void finishSenders(ebpfMonOtlp *o)
{
    ebpfMonOtlpOwn *own = &o->own;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        ebpfMonOtlpSender *sender = &own->sender[i];
        uint64_t before = ebpfMonOtlpCountsSumLost(&sender->counts), n;

        ebpfMonOtlpSenderDiscard(sender, o->http);
        n = ebpfMonOtlpCountsSumLost(&sender->counts) - before;
        if (n)
            errlogSevPrintf(errlogMajor, "ebpfMon: %s: %" PRIu64 " items were not sent before the end\n",
                            sender->out.name, n);
        sender->out.trouble = 0;
    }
    memset(&own->conf, 0, sizeof(own->conf));
    ebpfMonOtlpPublishState(o, ebpfMonClockSeconds(), 1); /* publish the counts … */
    own->queueFullUntil = 0;
    ebpfMonOtlpPublishState(o, ebpfMonClockSeconds(), 1); /* … and the state that follows from them */
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        ebpfMonOtlpSenderFree(&own->sender[i]);
    ebpfMonJsonFree(&own->json);
    own->endBy = 0;
}

static void runOtlpThread(ebpfMonWorker *worker, void *arg)
{
    ebpfMonOtlp *o = arg;
    double wait;
    int changed, idle;

    ebpfMonWorkerWaitsForOthers(worker); /* libcurl may wait for a name server */
    for (;;) { /* ends by "stopping", which has a time limit */
        ebpfMonWorkerGiveSign(worker);
        changed = applyCommands(o);
        idle = sendAll(o);
        if (o->own.endBy && (idle || ebpfMonClockSeconds() >= o->own.endBy))
            break;
        wait = o->own.endBy ? o->own.endBy - ebpfMonClockSeconds() : TICK;
        ebpfMonOtlpHttpWait(o->http, wait < 0 ? 0 : wait < TICK ? wait : TICK);
        ebpfMonOtlpPublishState(o, ebpfMonClockSeconds(), changed);
    }
    finishSenders(o);
    epicsMutexMustLock(o->lock);
    ebpfMonOtlpHttpFree(o->http);
    o->http = NULL;
    epicsMutexUnlock(o->lock);
}

int ebpfMonOtlpThreadStart(ebpfMonOtlp *o)
{
    if (o->worker && ebpfMonWorkerStop(&o->worker, 1.0)) /* when it was stopped, it did not end in time */
        return -1;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        if (ebpfMonOtlpSenderAllocate(&o->own.sender[i]))
            return -1;
    epicsSignalInstallSigPipeIgnore(); /* because TLS in libcurl may write to closed connections */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(o->http = ebpfMonOtlpHttpNew(onDone, o)))
        return -1;
    o->stopping = 0;
    o->own.generation = o->generation - 1; /* so that the thread applies "wanted" */
    o->own.nextMetrics = 0;
    o->worker = ebpfMonWorkerStart("ebpfMonOtlp", epicsThreadPriorityLow, runOtlpThread, o);
    if (o->worker)
        return 0;
    ebpfMonOtlpHttpFree(o->http);
    o->http = NULL;
    return -1;
}
