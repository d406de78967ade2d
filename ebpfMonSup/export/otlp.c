/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP as it is asked for, and the way of a put or span to its thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <errlog.h>

#include "export/otlp.h"
#include "export/otlpThread.h"
#include "export/pack.h"
#include "export/writer.h"

static ebpfMonOtlpShare *const share = &ebpfMonOtlp;
static int active[ebpfMonOtlpSignals]; /* puts, spans are taken: atomic */

void ebpfMonOtlpInit(void)
{
    if (!share->lock)
        share->lock = epicsMutexMustCreate();
}

void ebpfMonOtlpPut(const ebpfMonPut *put)
{
    uint8_t record[EBPFMON_PACK_MAX + EBPFMON_WHO_SIZE + EBPFMON_ORIGIN_SIZE];
    size_t who = strlen(put->who) + 1, origin = strlen(put->origin) + 1;

    if (!epicsAtomicGetIntT(&active[ebpfMonOtlpLogs]))
        return;
    memcpy(record, put->who, who);
    memcpy(record + who, put->origin, origin);
    ebpfMonQueueAdd(share->queue[ebpfMonOtlpLogs], record, who + origin + ebpfMonPack(put, record + who + origin));
}

void ebpfMonExportSpan(const ebpfMonSpan *span)
{
    unsigned n = span->attributes < EBPFMON_SPAN_ATTRIBUTES ? span->attributes : EBPFMON_SPAN_ATTRIBUTES;

    if (epicsAtomicGetIntT(&active[ebpfMonOtlpTraces]))
        ebpfMonQueueAdd(share->queue[ebpfMonOtlpTraces], span,
                        offsetof(ebpfMonSpan, attribute) + n * sizeof(span->attribute[0]));
}

/* Under the lock: queues and the thread. */
static int ready(const ebpfMonOtlpConf *c)
{
    int running = share->http != NULL, some = 0;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c->target[i].url[0])
            continue;
        some = 1;
        if (i != ebpfMonOtlpMetrics && !share->queue[i] && !(share->queue[i] = ebpfMonQueueCreate(EBPFMON_OTLP_QUEUE)))
            return -1;
    }
    if (running || !some)
        return 0;
    return ebpfMonOtlpThreadStart();
}

int ebpfMonOtlpConfigure(const ebpfMonOtlpConf *c)
{
    int bad;

    epicsMutexMustLock(share->lock);
    bad = ready(c);
    if (!bad) {
        share->wanted = *c;
        share->generation++;
        if (share->http)
            ebpfMonOtlpHttpWake(share->http);
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            epicsAtomicSetIntT(&active[i], share->http && c->target[i].url[0] && i != ebpfMonOtlpMetrics);
    }
    epicsMutexUnlock(share->lock);
    if (bad)
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: out of memory, nothing is sent\n");
    return bad;
}

void ebpfMonOtlpStart(void)
{
    ebpfMonOtlpConf c;
    char why[256];
    int commanded, some;

    epicsMutexMustLock(share->lock);
    commanded = share->commanded;
    epicsMutexUnlock(share->lock);
    if (commanded)
        return;
    some = ebpfMonOtlpConfEnvironment(&c, why, sizeof(why));
    if (some > 0) {
        ebpfMonOtlpConfigure(&c);
    } else if (some < 0) {
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: %s. Nothing is sent\n", why);
        ebpfMonOtlpPublish(ebpfMonLogTrouble, why, 0, 0, 0);
    }
}

long ebpfMonOtlpCommand(const char *url, const char *signals, const char *headers)
{
    ebpfMonOtlpConf c;
    char why[256];

    if (ebpfMonOtlpConfCommand(&c, url, signals, headers, why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "ebpfMonOtlp: %s\n", why);
        return -1;
    }
    epicsMutexMustLock(share->lock);
    share->commanded = 1;
    epicsMutexUnlock(share->lock);
    return ebpfMonOtlpConfigure(&c);
}

void ebpfMonOtlpStopBegin(double seconds)
{
    if (!share->lock)
        return;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        epicsAtomicSetIntT(&active[i], 0);
    epicsMutexMustLock(share->lock);
    if (share->http) {
        share->stopBy = ebpfMonWriterNow() + seconds;
        share->stopping = 1;
        ebpfMonOtlpHttpWake(share->http);
    }
    epicsMutexUnlock(share->lock);
}

void ebpfMonOtlpStopWait(void)
{
    double left;

    if (!share->lock)
        return;
    epicsMutexMustLock(share->lock);
    left = share->stopping ? share->stopBy + 0.5 - ebpfMonWriterNow() : -1;
    epicsMutexUnlock(share->lock);
    if (left < 0)
        return;
    if (epicsEventWaitWithTimeout(share->ended, left) != epicsEventOK) {
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP does not end (does a name server hang?): what is queued is lost\n");
        return;
    }
    epicsMutexMustLock(share->lock);
    share->stopping = share->commanded = 0;
    memset(&share->wanted, 0, sizeof(share->wanted));
    epicsMutexUnlock(share->lock);
}

void ebpfMonOtlpResetLost(void)
{
    if (!share->lock)
        return;
    epicsMutexMustLock(share->lock);
    share->lostBase = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        share->lostBase += ebpfMonOtlpLostOf(&share->counts[i]);
    epicsMutexUnlock(share->lock);
}

void ebpfMonOtlpReport(int level)
{
    ebpfMonOtlpCounts count[ebpfMonOtlpSignals];
    ebpfMonOtlpConf c;
    double queue;
    unsigned on = 0;

    if (!share->lock)
        return;
    epicsMutexMustLock(share->lock);
    memcpy(count, share->counts, sizeof(count));
    c = share->wanted;
    queue = share->queuePeak;
    epicsMutexUnlock(share->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        on += c.target[i].url[0] != 0;
    if (!on) {
        printf("  OTLP: off\n");
        return;
    }
    printf("  OTLP: queue at %.1f %%, metrics every %g s\n", queue, c.interval);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c.target[i].url[0])
            continue;
        printf("    %s: %" PRIu64 " sent in %" PRIu64 " requests, %" PRIu64 " lost",
               ebpfMonOtlpSignalName((ebpfMonOtlpSignal)i), count[i].sent, count[i].requests, ebpfMonOtlpLostOf(&count[i]));
        for (unsigned r = 0; r < ebpfMonOtlpReasons; r++)
            if (count[i].lost[r] || level > 0)
                printf(", %s %" PRIu64, ebpfMonOtlpReasonNames[r], count[i].lost[r]);
        printf("%s%s\n", count[i].trouble ? "; " : "", count[i].trouble ? count[i].why : "");
    }
}
