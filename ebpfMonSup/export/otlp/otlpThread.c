/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <epicsSignal.h>
#include <epicsThread.h>
#include <errlog.h>

#include "export/jsonGen.h"
#include "export/otlp/otlpJson.h"
#include "export/otlp/otlpThread.h"
#include "export/log/logThread.h"

#define TICK       0.2  /* s */
#define TELL_EVERY 1.0  /* s, the PVs */
#define QUEUE_TOLD 10.0 /* s that a full queue is told of */
#define SMOOTH     0.3  /* of the last second in OTLP_RATE */

ebpfMonOtlpShare ebpfMonOtlp;

static ebpfMonOtlpShare *const share = &ebpfMonOtlp;
static ebpfMonOtlpSender senders[ebpfMonOtlpSignals];
static ebpfMonExemplars exemplars;
static ebpfMonOtlpConf conf;
static double endBy, queueTold;

void ebpfMonOtlpPublish(const ebpfMonOtlpShown *shown)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    published->otlp.state = shown->state;
    ebpfMonTextCopy(published->otlp.message, sizeof(published->otlp.message), shown->why);
    published->otlp.sent = shown->sent;
    published->otlp.lost = shown->lost;
    published->otlp.rate = shown->rate;
    published->otlp.queue = shown->queue;
    epicsTimeGetCurrent(&published->time[ebpfMonGroupOtlp]);
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupOtlp);
}

/* Items a second; told early because something changed, what it was. */
static double rateOf(uint64_t sent, double now)
{
    static double at, rate;
    static uint64_t before;
    double current = now > at ? (double)(sent - before) / (now - at) : 0;

    if (now - at < TELL_EVERY / 2)
        return rate;
    rate = current == 0 && rate < 0.01 ? 0 : at == 0 ? current : rate + SMOOTH * (current - rate);
    at = now;
    before = sent;
    return rate;
}

static void tell(double now, int force)
{
    static double nextTell;
    static int before = -1;
    ebpfMonLogState state;
    uint64_t sent = 0, lost = 0, full = 0, fullBefore = 0;
    double most = 0;
    unsigned on = 0, bad = 0;
    char why[512] = "", line[360] = "";

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        on += conf.target[i].url[0] != 0;
        if (senders[i].out.trouble && !bad++)
            snprintf(line, sizeof(line), "%.150s: %s", senders[i].out.name, senders[i].out.why);
    }
    if (!force && now < nextTell && (bad > 0) == (before == (int)ebpfMonLogTrouble))
        return;
    nextTell = now + TELL_EVERY;
    epicsMutexMustLock(share->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        double peak;

        fullBefore += share->counts[i].lost[ebpfMonOtlpQueueFull];
        share->counts[i] = *ebpfMonOtlpSenderCount(&senders[i], &peak);
        full += share->counts[i].lost[ebpfMonOtlpQueueFull];
        most = peak > most ? peak : most;
        sent += share->counts[i].sent;
        lost += ebpfMonOtlpLostOf(&share->counts[i]);
    }
    share->queuePeak = most;
    lost -= lost > share->lostBase ? share->lostBase : lost;
    epicsMutexUnlock(share->lock);
    if (full > fullBefore) {
        if (now >= queueTold)
            errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: the queue is full, some are lost: OTLP_LOST_CNT counts "
                            "them\n");
        queueTold = now + QUEUE_TOLD;
    }
    if (bad) {
        snprintf(why, sizeof(why), bad > 1 ? "%s (and %u more: ebpfMonOtlpShow)" : "%s", line, bad - 1);
    } else if (now < queueTold) {
        bad = 1;
        strcpy(why, "queue full: send fewer puts (FILTER_*), or to a faster collector");
    } else if (!on) {
        strcpy(why, EBPFMON_NO_OTLP);
    } else {
        for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
            if (conf.target[i].url[0])
                snprintf(why + strlen(why), sizeof(why) - strlen(why), "%s%.150s", why[0] ? ", " : "",
                         senders[i].out.name + (i == ebpfMonOtlpZipkin ? 0 : strlen("OTLP ")));
    }
    state = bad ? ebpfMonLogTrouble : on ? ebpfMonLogOk : ebpfMonLogNone;
    before = (int)state;
    ebpfMonOtlpPublish(&(ebpfMonOtlpShown){
        .state = state, .why = why, .sent = sent, .lost = lost, .rate = on ? rateOf(sent, now) : 0, .queue = most,
    });
}

static void look(ebpfMonOtlpNumbers *n)
{
    ebpfMonPublished *published;
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    n->now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    published = ebpfMonPublishedLock();
    n->putIocs = published->puts.iocCount;
    memcpy(n->putIoc, published->puts.ioc, published->puts.iocCount * sizeof(n->putIoc[0]));
    n->losses = published->losses.kinds < EBPFMON_LOSSES_MAX ? published->losses.kinds : EBPFMON_LOSSES_MAX;
    for (unsigned i = 0; i < n->losses; i++) {
        strcpy(n->lost[i].reason, published->losses.by[i].reason);
        n->lost[i].count = published->losses.by[i].count;
    }
    n->cost = published->costs.iocs;
    n->cpu = published->costs.cpu;
    n->mem = published->costs.memory;
    n->iocs = published->iocs.count;
    for (unsigned i = 0; i < n->iocs; i++) {
        strcpy(n->ioc[i].name, published->iocs.ioc[i].name);
        n->ioc[i].records = published->iocs.ioc[i].records;
        n->ioc[i].cost = published->iocs.ioc[i].cost;
        n->ioc[i].processings = published->iocs.ioc[i].procCount;
    }
    n->roots = published->chains.slowestCount;
    memcpy(n->chain, published->chains.slowest, published->chains.slowestCount * sizeof(n->chain[0]));
    strcpy(n->root, published->chains.selectedRoot);
    memcpy(n->hist, published->chains.hist, sizeof(n->hist));
    memcpy(n->edge, published->chains.histEdge, sizeof(n->edge));
    epicsTimeToTimespec(&t, &published->time[ebpfMonGroupChains]);
    n->counted = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    ebpfMonPublishedUnlock();
    n->sent = 0;
    n->drops = ebpfMonOtlpReasons;
    for (unsigned r = 0; r < ebpfMonOtlpReasons; r++)
        n->drop[r].count = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        n->sent += senders[i].counts.sent;
        for (unsigned r = 0; r < ebpfMonOtlpReasons; r++) {
            n->drop[r].reason = ebpfMonOtlpReasonNames[r];
            n->drop[r].count += senders[i].counts.lost[r];
        }
    }
}

static void measure(double now)
{
    static ebpfMonOtlpNumbers numbers;
    static ebpfMonOtlpSinces starts;
    static char text[EBPFMON_OTLP_BATCH];
    unsigned points = 0;
    size_t len;

    look(&numbers);
    len = ebpfMonOtlpMetricItems(&numbers, &exemplars, &starts, text, sizeof(text), &points);
    ebpfMonExemplarClear(&exemplars, numbers.counted);
    ebpfMonOtlpSenderSet(&senders[ebpfMonOtlpMetrics], &conf, text, len, points, now);
}

static void done(void *arg, ebpfMonOtlpSignal signal, const ebpfMonHttpResult *result)
{
    (void)arg;
    ebpfMonOtlpSenderDone(&senders[signal], result, &conf, endBy, ebpfMonLogThreadNow());
}

static void apply(void)
{
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        senders[i].signal = (ebpfMonOtlpSignal)i;
        senders[i].queue = share->queue[i];
        senders[i].exemplars = conf.target[ebpfMonOtlpMetrics].url[0] ? &exemplars : NULL;
        ebpfMonOtlpSenderTarget(&senders[i], share->http, &conf);
    }
}

/* Nonzero when nothing waits any more. */
static int turn(int last, double *nextMetrics)
{
    double now = ebpfMonLogThreadNow();
    ebpfMonOtlpSender *metrics = &senders[ebpfMonOtlpMetrics];
    int idle = 1;

    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) /* spans before the metrics whose exemplars they are */
        if (conf.target[i].url[0])
            ebpfMonOtlpSenderFill(&senders[i], &conf, now);
    if (conf.target[ebpfMonOtlpMetrics].url[0] && now >= *nextMetrics && !metrics->inFlight) {
        measure(now);
        *nextMetrics = now + conf.interval;
    }
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        if (!conf.target[i].url[0])
            continue;
        ebpfMonOtlpSenderPost(&senders[i], share->http, last, now);
        idle &= ebpfMonOtlpSenderIdle(&senders[i]);
    }
    return idle;
}

static void finish(void)
{
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        uint64_t before = ebpfMonOtlpLostOf(&senders[i].counts), n;

        ebpfMonOtlpSenderDiscard(&senders[i], share->http);
        n = ebpfMonOtlpLostOf(&senders[i].counts) - before;
        if (n)
            errlogSevPrintf(errlogMajor, "ebpfMon: %s: %" PRIu64 " were not sent before the end\n",
                            senders[i].out.name, n);
        senders[i].out.trouble = 0;
    }
    memset(&conf, 0, sizeof(conf));
    tell(ebpfMonLogThreadNow(), 1); /* counts; what follows is the state */
    queueTold = 0;
    tell(ebpfMonLogThreadNow(), 1);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        ebpfMonOtlpSenderFree(&senders[i]);
    ebpfMonJsonForget();
}

static void otlpThread(void *unused)
{
    unsigned applied = 0;
    double nextMetrics = 0, wait;
    int last = 0, changed, idle;

    (void)unused;
    for (;;) {
        epicsMutexMustLock(share->lock);
        changed = share->generation != applied;
        applied = share->generation;
        if (changed)
            conf = share->wanted;
        if (share->stopping && !last) { /* one last try of what waits, and the last values */
            last = 1;
            endBy = share->stopBy;
            nextMetrics = 0;
            for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
                senders[i].out.retryAt = 0;
        }
        epicsMutexUnlock(share->lock);
        if (changed) {
            apply();
            nextMetrics = 0;
        }
        idle = turn(last, &nextMetrics);
        if (last && (idle || ebpfMonLogThreadNow() >= endBy))
            break;
        wait = last ? endBy - ebpfMonLogThreadNow() : TICK;
        ebpfMonOtlpHttpWait(share->http, wait < 0 ? 0 : wait < TICK ? wait : TICK);
        tell(ebpfMonLogThreadNow(), changed);
    }
    finish();
    endBy = 0;
    epicsMutexMustLock(share->lock);
    ebpfMonOtlpHttpClose(share->http);
    share->http = NULL;
    epicsMutexUnlock(share->lock);
    epicsEventMustTrigger(share->ended);
}

int ebpfMonOtlpThreadStart(void)
{
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        if (ebpfMonOtlpSenderReady(&senders[i]))
            return -1;
    epicsSignalInstallSigPipeIgnore(); /* TLS in libcurl writes to connections that may be closed */
    if (curl_global_init(CURL_GLOBAL_DEFAULT) || !(share->http = ebpfMonOtlpHttpOpen(done, NULL)))
        return -1;
    if (!share->ended)
        share->ended = epicsEventMustCreate(epicsEventEmpty);
    share->stopping = 0;
    epicsThreadMustCreate("ebpfMonOtlp", epicsThreadPriorityLow, epicsThreadGetStackSize(epicsThreadStackBig),
                          otlpThread, NULL);
    return 0;
}
