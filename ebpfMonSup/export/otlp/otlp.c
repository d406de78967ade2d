/* SPDX-License-Identifier: BSD-3-Clause */
/* OTLP as it is asked for, and the way of a put or span to its thread. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <epicsAtomic.h>
#include <errlog.h>

#include "export/otlp/otlp.h"
#include "export/otlp/otlpThread.h"
#include "export/putPack.h"
#include "export/otlp/spanPack.h"
#include "export/log/logThread.h"

static ebpfMonOtlpShare *const share = &ebpfMonOtlp;

#define ALL    ((1u << ebpfMonOtlpSignals) - 1)
#define ZIPKIN (1u << ebpfMonOtlpZipkin)

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
    ebpfMonRecordQueueAdd(share->queue[ebpfMonOtlpLogs], record, who + origin + ebpfMonPutPack(put, record + who + origin));
}

int ebpfMonExportsSpans(void)
{
    return epicsAtomicGetIntT(&active[ebpfMonOtlpTraces]) || epicsAtomicGetIntT(&active[ebpfMonOtlpZipkin]);
}

void ebpfMonExportSpan(const ebpfMonSpan *span)
{
    uint8_t record[EBPFMON_SPAN_PACK_MAX];
    size_t len;

    if (!ebpfMonExportsSpans())
        return;
    len = ebpfMonSpanPack(span, record);
    for (unsigned i = ebpfMonOtlpTraces; i <= ebpfMonOtlpZipkin; i++)
        if (epicsAtomicGetIntT(&active[i]))
            ebpfMonRecordQueueAdd(share->queue[i], record, len);
}

/* Under the lock: queues and the thread. */
static int ready(const ebpfMonOtlpConf *c)
{
    int running = share->http != NULL, some = 0;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c->target[i].url[0])
            continue;
        some = 1;
        if (i != ebpfMonOtlpMetrics && !share->queue[i] && !(share->queue[i] = ebpfMonRecordQueueNew(EBPFMON_OTLP_QUEUE)))
            return -1;
    }
    if (running || !some)
        return 0;
    return ebpfMonOtlpThreadStart();
}

/* Sends so from now on; targets that are not of these signals (bits) stay as they are. */
static int configure(const ebpfMonOtlpConf *c, unsigned which)
{
    static ebpfMonOtlpConf next; /* under the lock */
    int bad;

    epicsMutexMustLock(share->lock);
    next = *c;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        if (!(which & 1u << i))
            next.target[i] = share->wanted.target[i];
    bad = ready(&next);
    if (!bad) {
        share->wanted = next;
        share->generation++;
        if (share->http)
            ebpfMonOtlpHttpWake(share->http);
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            epicsAtomicSetIntT(&active[i], share->http && next.target[i].url[0] && i != ebpfMonOtlpMetrics);
    }
    epicsMutexUnlock(share->lock);
    if (bad)
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: out of memory, nothing is sent\n");
    return bad;
}

int ebpfMonOtlpConfigure(const ebpfMonOtlpConf *c)
{
    return configure(c, ALL);
}

void ebpfMonOtlpStart(void)
{
    ebpfMonOtlpConf c;
    char why[256];
    unsigned commanded;
    int some;

    epicsMutexMustLock(share->lock);
    commanded = share->commanded;
    epicsMutexUnlock(share->lock);
    if (commanded == ALL)
        return;
    some = ebpfMonOtlpConfEnvironment(&c, why, sizeof(why));
    if (some > 0) {
        configure(&c, ALL & ~commanded);
    } else if (some < 0) {
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: %s. Nothing is sent\n", why);
        if (!commanded)
            ebpfMonOtlpPublish(&(ebpfMonOtlpShown){ .state = ebpfMonLogTrouble, .why = why });
    }
}

static long command(const ebpfMonOtlpConf *c, unsigned which)
{
    epicsMutexMustLock(share->lock);
    share->commanded |= which;
    epicsMutexUnlock(share->lock);
    return configure(c, which);
}

long ebpfMonOtlpCommand(const char *url, const char *signals, const char *headers)
{
    ebpfMonOtlpConf c;
    char why[256];

    if (ebpfMonOtlpConfCommand(&c, url, signals, headers, why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "ebpfMonOtlp: %s\n", why);
        return -1;
    }
    return command(&c, ALL & ~ZIPKIN);
}

long ebpfMonZipkinCommand(const char *url)
{
    ebpfMonOtlpConf c;
    char why[256];

    if (ebpfMonOtlpConfZipkin(&c, url, why, sizeof(why))) {
        errlogSevPrintf(errlogMajor, "ebpfMonZipkin: %s\n", why);
        return -1;
    }
    return command(&c, ZIPKIN);
}

void ebpfMonOtlpStopBegin(double seconds)
{
    if (!share->lock)
        return;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        epicsAtomicSetIntT(&active[i], 0);
    epicsMutexMustLock(share->lock);
    if (share->http) {
        share->stopBy = ebpfMonLogThreadNow() + seconds;
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
    left = share->stopping ? share->stopBy + 0.5 - ebpfMonLogThreadNow() : -1;
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
        printf("  OTLP, Zipkin: off\n");
        return;
    }
    printf("  OTLP: queue at %.1f %%, metrics every %g s\n", queue, c.interval);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!c.target[i].url[0])
            continue;
        printf("    %s: %" PRIu64 " sent in %" PRIu64 " requests, %" PRIu64 " lost",
               ebpfMonOtlpSignalName((ebpfMonOtlpSignal)i), count[i].sent, count[i].requests,
               ebpfMonOtlpLostOf(&count[i]));
        for (unsigned r = 0; r < ebpfMonOtlpReasons; r++)
            if (count[i].lost[r] || level > 0)
                printf(", %s %" PRIu64, ebpfMonOtlpReasonNames[r], count[i].lost[r]);
        printf("%s%s\n", count[i].trouble ? "; " : "", count[i].trouble ? count[i].why : "");
    }
}
