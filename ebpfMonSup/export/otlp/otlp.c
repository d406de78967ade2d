/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of OTLP, and the queues of puts and spans to the thread that sends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <errlog.h>

#include "common/clock.h"
#include "export/otlp/otlp.h"
#include "export/otlp/otlpThread.h"
#include "export/otlp/spanPack.h"
#include "export/shared/putPack.h"

#define SPAN_BYTES 1024 /* of one span in the queue; most take 300 to 500 */

#define ALL    ((1u << ebpfMonOtlpSignals) - 1)
#define ZIPKIN (1u << ebpfMonOtlpZipkin)
#define CLOSE_SECONDS 0.5 /* s; to close without waiting for what is left */

ebpfMonOtlp *ebpfMonOtlpNew(ebpfMonQueryResults *results)
{
    ebpfMonOtlp *o = calloc(1, sizeof(*o));

    if (o) {
        o->lock = epicsMutexMustCreate();
        o->results = results;
    }
    return o;
}

void ebpfMonOtlpFree(ebpfMonOtlp *o)
{
    if (!o || o->worker)
        return;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        ebpfMonRecordQueueFree(o->queue[i]);
    epicsMutexDestroy(o->lock);
    free(o);
}

void ebpfMonOtlpAddPut(ebpfMonOtlp *o, const ebpfMonPut *put)
{
    uint8_t record[EBPFMON_PUT_PACK_MAX + EBPFMON_WHO_SIZE + EBPFMON_ORIGIN_SIZE];
    size_t who = strlen(put->who) + 1, origin = strlen(put->origin) + 1;

    if (!epicsAtomicGetIntT(&o->active[ebpfMonOtlpLogs]))
        return;
    memcpy(record, put->who, who);
    memcpy(record + who, put->origin, origin);
    ebpfMonRecordQueueAdd(o->queue[ebpfMonOtlpLogs], ebpfMonRecordQueueShareOf(put->ioc), record,
                          who + origin + ebpfMonPutPack(put, record + who + origin));
}

int ebpfMonOtlpWantsSpans(ebpfMonOtlp *o)
{
    return epicsAtomicGetIntT(&o->active[ebpfMonOtlpTraces]) || epicsAtomicGetIntT(&o->active[ebpfMonOtlpZipkin]);
}

void ebpfMonOtlpAddSpan(ebpfMonOtlp *o, const ebpfMonSpan *span)
{
    uint8_t record[EBPFMON_SPAN_PACK_MAX];
    size_t len;

    if (!ebpfMonOtlpWantsSpans(o))
        return;
    len = ebpfMonSpanPack(span, record);
    for (unsigned i = ebpfMonOtlpTraces; i <= ebpfMonOtlpZipkin; i++)
        if (epicsAtomicGetIntT(&o->active[i]))
            ebpfMonRecordQueueAdd(o->queue[i], 0, record, len);
}

int ebpfMonOtlpHasRoom(ebpfMonOtlp *o, unsigned spans)
{
    for (unsigned i = ebpfMonOtlpTraces; i <= ebpfMonOtlpZipkin; i++)
        if (epicsAtomicGetIntT(&o->active[i]) && ebpfMonRecordQueueGetRoom(o->queue[i]) < (size_t)spans * SPAN_BYTES)
            return 0;
    return 1;
}

/* Makes the queues and starts the thread, under the lock. 0, or -1: no memory. */
static int prepareThread(ebpfMonOtlp *o, const ebpfMonOtlpConf *c)
{
    int some = 0;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c->target[i].url[0])
            continue;
        some = 1;
        if (i != ebpfMonOtlpMetrics && !o->queue[i] && !(o->queue[i] = ebpfMonRecordQueueNew(EBPFMON_OTLP_QUEUE)))
            return -1;
    }
    return o->http || !some ? 0 : ebpfMonOtlpThreadStart(o);
}

/* Sets the configuration from now on; signals that are not in "which" (a bit each) keep their targets. */
static int configureSignals(ebpfMonOtlp *o, const ebpfMonOtlpConf *c, unsigned which)
{
    ebpfMonOtlpConf next = *c;
    int bad;

    epicsMutexMustLock(o->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        if (!(which & 1u << i))
            next.target[i] = o->wanted.target[i];
    bad = prepareThread(o, &next);
    if (!bad) {
        o->wanted = next;
        o->generation++;
        if (o->http)
            ebpfMonOtlpHttpWake(o->http);
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            epicsAtomicSetIntT(&o->active[i], o->http && next.target[i].url[0] && i != ebpfMonOtlpMetrics);
    }
    epicsMutexUnlock(o->lock);
    if (bad)
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: out of memory, nothing is sent. Free some memory, then try "
                        "again\n");
    return bad;
}

int ebpfMonOtlpConfigure(ebpfMonOtlp *o, const ebpfMonOtlpConf *c)
{
    return configureSignals(o, c, ALL);
}

void ebpfMonOtlpReadEnvironment(ebpfMonOtlp *o)
{
    ebpfMonOtlpConf c;
    char why[256];
    unsigned commanded;
    int some;

    epicsMutexMustLock(o->lock);
    commanded = o->commanded;
    epicsMutexUnlock(o->lock);
    if (commanded == ALL)
        return;
    some = ebpfMonOtlpConfReadEnvironment(&c, why, sizeof(why));
    if (some > 0) {
        configureSignals(o, &c, ALL & ~commanded);
    } else if (some < 0) {
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: %s. Nothing is sent\n", why);
        if (!commanded)
            ebpfMonOtlpPublish(&(ebpfMonOtlpShown){ .state = ebpfMonLogTrouble, .why = why });
    }
}

static int configureByCommand(ebpfMonOtlp *o, const ebpfMonOtlpConf *c, unsigned which)
{
    epicsMutexMustLock(o->lock);
    o->commanded |= which;
    epicsMutexUnlock(o->lock);
    return configureSignals(o, c, which);
}

int ebpfMonOtlpSetCommand(ebpfMonOtlp *o, const char *url, const char *signals, const char *headers)
{
    ebpfMonOtlpConf c;
    char why[256];

    if (ebpfMonOtlpConfSetCommand(&c, url, signals, headers, why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "ebpfMonOtlp: %s\n", why);
        return -1;
    }
    return configureByCommand(o, &c, ALL & ~ZIPKIN);
}

int ebpfMonOtlpSetZipkin(ebpfMonOtlp *o, const char *url)
{
    ebpfMonOtlpConf c;
    char why[256];

    if (ebpfMonOtlpConfSetZipkin(&c, url, why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "ebpfMonZipkin: %s\n", why);
        return -1;
    }
    return configureByCommand(o, &c, ZIPKIN);
}

void ebpfMonOtlpStop(ebpfMonOtlp *o, double seconds)
{
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        epicsAtomicSetIntT(&o->active[i], 0);
    epicsMutexMustLock(o->lock);
    if (o->http) {
        o->stopBy = ebpfMonClockSeconds() + seconds;
        o->stopping = 1;
        ebpfMonOtlpHttpWake(o->http);
    }
    epicsMutexUnlock(o->lock);
}

void ebpfMonOtlpWaitStopped(ebpfMonOtlp *o)
{
    ebpfMonWorker *worker;
    double left;

    epicsMutexMustLock(o->lock);
    worker = o->stopping ? o->worker : NULL;
    left = o->stopBy + CLOSE_SECONDS - ebpfMonClockSeconds();
    epicsMutexUnlock(o->lock);
    if (!worker)
        return;
    /* without the lock, which the thread takes */
    if (ebpfMonWorkerStop(&worker, left > 0 ? left : 0)) {
        errlogSevPrintf(errlogMajor,
                        "ebpfMon: OTLP did not end in time (does a name server hang?): the queued items are "
                        "lost\n");
        return;
    }
    epicsMutexMustLock(o->lock);
    o->worker = NULL;
    o->stopping = o->commanded = 0;
    memset(&o->wanted, 0, sizeof(o->wanted));
    epicsMutexUnlock(o->lock);
}

void ebpfMonOtlpResetLost(ebpfMonOtlp *o)
{
    epicsMutexMustLock(o->lock);
    o->lostBase = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        o->lostBase += ebpfMonOtlpCountsSumLost(&o->counts[i]);
    epicsMutexUnlock(o->lock);
}

void ebpfMonOtlpReport(ebpfMonOtlp *o, int level)
{
    ebpfMonOtlpCounts count[ebpfMonOtlpSignals];
    ebpfMonOtlpConf c;
    double queue;
    unsigned on = 0;

    epicsMutexMustLock(o->lock);
    memcpy(count, o->counts, sizeof(count));
    c = o->wanted;
    queue = o->queuePeak;
    epicsMutexUnlock(o->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        on += c.target[i].url[0] != 0;
    if (!on) {
        printf("  OTLP, Zipkin: off\n");
        return;
    }
    printf("  OTLP: queue at %.1f %%, metrics every %g s\n", queue, c.interval);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c.target[i].url[0])
            continue;
        printf("    %s: %" PRIu64 " sent in %" PRIu64 " requests, %" PRIu64 " lost",
               ebpfMonOtlpSignalGetName((ebpfMonOtlpSignal)i), count[i].sent, count[i].requests,
               ebpfMonOtlpCountsSumLost(&count[i]));
        for (unsigned r = 0; r < ebpfMonOtlpReasons; r++)
            if (count[i].lost[r] || level > 0)
                printf(", %s %" PRIu64, ebpfMonOtlpReasonNames[r], count[i].lost[r]);
        printf("%s%s\n", count[i].trouble ? "; " : "", count[i].trouble ? count[i].why : "");
    }
}
