/* SPDX-License-Identifier: BSD-3-Clause */
#include <curl/curl.h>
#include <epicsAtomic.h>
#include <epicsSignal.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <errlog.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "common/clock.h"
#include "common/text.h"
#include "otlp/otlp.h"
#include "otlp/otlpMetrics.h"
#include "trace/span.h"
#include "export/shared/recordQueue.h"

/*
 * What commands (any thread) and the thread that sends share. Only the thread uses the senders. Commands write what
 * they want to "wanted", and read "counts".
 */

/* Only for the thread. */
typedef struct {
    ebpfMonOtlpConf conf;           /* the configuration that applies now */
    unsigned generation;            /* that of the configuration which applies now */
    ebpfMonOtlpSender sender[ebpfMonOtlpSignals];
    ebpfMonExemplars exemplars;
    ebpfMonOtlpNumbers numbers;
    ebpfMonOtlpSinces sinces;
    ebpfMonJson json;               /* writes the metrics */
    char     metrics[EBPFMON_OTLP_METRICS];
    double   nextMetrics;           /* s, monotonic; also the times below */
    double   endBy;                 /* time of the end; 0: it does not end */
    double   publishAt;
    double   queueFullUntil;        /* until then the state tells that the queue was full */
    int      troubleBefore;         /* nonzero: there was trouble at the last publication */
    struct { double at, rate; uint64_t sent; } rate; /* items per second at the last publication */
} ebpfMonOtlpOwn;

struct ebpfMonOtlp {
    const ebpfMonModule *module;    /* fixed */
    ebpfMonOtlpValues shown;        /* under the lock of the published values */
    int active[ebpfMonOtlpSignals]; /* atomic; nonzero: puts or spans are queued */
    ebpfMonRecordQueue *queue[ebpfMonOtlpSignals]; /* made under the lock, before "active" is set, and then kept */
    epicsMutexId lock;              /* protects the members below, except "own" */
    unsigned commanded;             /* signals that a command has set, a bit each; the environment does not apply to
                                     * them */
    ebpfMonOtlpConf wanted;
    unsigned generation;            /* changes with "wanted" */
    ebpfMonOtlpHttp *http;          /* commands use it to wake the thread; NULL: the thread does not run */
    ebpfMonWorker *worker;          /* NULL: there is no thread */
    int      stopping;              /* nonzero: the thread shall end, not later than stopBy (s, monotonic) */
    double   stopBy;
    ebpfMonOtlpCounts counts[ebpfMonOtlpSignals]; /* written by the thread */
    double   queuePeak;             /* written by the thread; percent */
    uint64_t lostBase;              /* losses until the last reset */
    ebpfMonOtlpOwn own;
};

static void publishOtlpState(ebpfMonOtlp *otlp, double now, int force);

/* --- the thread --- */

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
    publishOtlpState(o, ebpfMonClockSeconds(), 1); /* publish the counts … */
    own->queueFullUntil = 0;
    publishOtlpState(o, ebpfMonClockSeconds(), 1); /* … and the state that follows from them */
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
        publishOtlpState(o, ebpfMonClockSeconds(), changed);
    }
    finishSenders(o);
    epicsMutexMustLock(o->lock);
    ebpfMonOtlpHttpFree(o->http);
    o->http = NULL;
    epicsMutexUnlock(o->lock);
}

/* Starts the thread, under the lock. 0, or -1: no memory, or an earlier thread still runs. */
static int startOtlpThread(ebpfMonOtlp *o)
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

/* --- the state --- */

#define PUBLISH_EVERY  1.0  /* s */
#define QUEUE_FULL_FOR 10.0 /* s; for so long the state tells that the queue was full */
#define SMOOTH         0.3  /* weight of the last second in OTLP_RATE */

#define NOTHING "nothing is sent: ebpfMonOtlp or OTEL_EXPORTER_OTLP_ENDPOINT begins it"

/* Any thread. */
static void publishOtlp(ebpfMonOtlp *o, const ebpfMonOtlpValues *values)
{
    ebpfMonModuleLock();
    o->shown = *values;
    ebpfMonModuleUnlock();
    ebpfMonModuleShow(o->module);
}

const ebpfMonOtlpValues *ebpfMonOtlpGetValues(const ebpfMonOtlp *o)
{
    return &o->shown;
}

/* Returns the items per second. A call that comes early, because the state has changed, gets the rate of the last
 * call. */
static double getRate(ebpfMonOtlpOwn *own, uint64_t sent, double now)
{
    double seconds = now - own->rate.at;
    double current = seconds > 0 ? (double)(sent - own->rate.sent) / seconds : 0;

    if (seconds < PUBLISH_EVERY / 2)
        return own->rate.rate;
    own->rate.rate = current == 0 && own->rate.rate < 0.01 ? 0 : own->rate.at == 0 ? current :
                     own->rate.rate + SMOOTH * (current - own->rate.rate);
    own->rate.at = now;
    own->rate.sent = sent;
    return own->rate.rate;
}

/* Copies the counts of the senders. Returns how many items the queues have dropped since the last call. */
static uint64_t takeCounts(ebpfMonOtlp *o, uint64_t *sent, uint64_t *lost, double *peak)
{
    uint64_t full = 0, fullBefore = 0;

    *sent = *lost = 0;
    *peak = 0;
    epicsMutexMustLock(o->lock);
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        double one;

        fullBefore += o->counts[i].lost[ebpfMonOtlpQueueFull];
        o->counts[i] = *ebpfMonOtlpSenderGetCounts(&o->own.sender[i], &one);
        full += o->counts[i].lost[ebpfMonOtlpQueueFull];
        *peak = one > *peak ? one : *peak;
        *sent += o->counts[i].sent;
        *lost += ebpfMonOtlpCountsSumLost(&o->counts[i]);
    }
    o->queuePeak = *peak;
    *lost -= *lost > o->lostBase ? o->lostBase : *lost;
    epicsMutexUnlock(o->lock);
    return full - fullBefore;
}

/* Counts the senders in trouble. "first": name and reason of the first one; *on: number of senders with a target. */
static unsigned findTrouble(const ebpfMonOtlpOwn *own, unsigned *on, char *first, size_t size)
{
    unsigned bad = 0;

    *on = 0;
    first[0] = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++) {
        const ebpfMonDestination *d = &own->sender[i].out;

        *on += own->conf.target[i].url[0] != 0;
        if (d->trouble && !bad++)
            snprintf(first, size, "%.150s: %s", d->name, d->why);
    }
    return bad;
}

static void listTargets(const ebpfMonOtlpOwn *own, char *text, size_t size)
{
    text[0] = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        if (own->conf.target[i].url[0])
            snprintf(text + strlen(text), size - strlen(text), "%s%.150s", text[0] ? ", " : "",
                     own->sender[i].out.name + (i == ebpfMonOtlpZipkin ? 0 : strlen("OTLP ")));
}

/* Publishes state and counts: once a second, when the state changes, or at once ("force"). Only the thread. */
static void publishOtlpState(ebpfMonOtlp *o, double now, int force)
{
    ebpfMonOtlpOwn *own = &o->own;
    uint64_t sent, lost;
    double peak;
    unsigned on, bad;
    char why[512], first[360];
    ebpfMonOtlpValues values;

    bad = findTrouble(own, &on, first, sizeof(first));
    if (!force && now < own->publishAt && (bad > 0) == own->troubleBefore)
        return;
    own->publishAt = now + PUBLISH_EVERY;
    if (takeCounts(o, &sent, &lost, &peak)) {
        if (now >= own->queueFullUntil)
            errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: the queue is full, and items are lost; OTLP_LOST_CNT counts "
                            "them. Send fewer puts (FILTER_*), or to a faster collector\n");
        own->queueFullUntil = now + QUEUE_FULL_FOR;
    }
    if (bad > 1) {
        snprintf(why, sizeof(why), "%s (and %u more: ebpfMonOtlpShow)", first, bad - 1);
    } else if (bad) {
        strcpy(why, first);
    } else if (now < own->queueFullUntil) {
        bad = 1;
        strcpy(why, "queue full: send fewer puts (FILTER_*), or to a faster collector");
    } else if (!on) {
        strcpy(why, NOTHING);
    } else {
        listTargets(own, why, sizeof(why));
    }
    own->troubleBefore = bad > 0;
    values = (ebpfMonOtlpValues){
        .state = bad ? ebpfMonLogTrouble : on ? ebpfMonLogOk : ebpfMonLogNone, .sent = sent, .lost = lost,
        .rate = on ? getRate(own, sent, now) : 0, .queue = peak,
    };
    ebpfMonTextCopy(values.message, sizeof(values.message), why);
    publishOtlp(o, &values);
}

/* --- commands --- */

/* The commands of OTLP, and the queues of puts and spans to the thread that sends. */

#define SPAN_BYTES 1024 /* of one span in the queue; most take 300 to 500 */

#define ALL    ((1u << ebpfMonOtlpSignals) - 1)
#define ZIPKIN (1u << ebpfMonOtlpZipkin)
#define CLOSE_SECONDS 0.5 /* s; to close without waiting for what is left */

ebpfMonOtlp *ebpfMonOtlpNew(const ebpfMonModule *module)
{
    ebpfMonOtlp *o = calloc(1, sizeof(*o));

    if (o) {
        o->module = module;
        strcpy(o->shown.message, NOTHING);
        o->lock = epicsMutexMustCreate();
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

int ebpfMonOtlpWantsSpans(void *otlp)
{
    ebpfMonOtlp *o = otlp;
    return epicsAtomicGetIntT(&o->active[ebpfMonOtlpTraces]) || epicsAtomicGetIntT(&o->active[ebpfMonOtlpZipkin]);
}

void ebpfMonOtlpAddSpan(void *otlp, const ebpfMonSpan *span)
{
    ebpfMonOtlp *o = otlp;
    uint8_t record[EBPFMON_SPAN_PACK_MAX];
    size_t len;

    if (!ebpfMonOtlpWantsSpans(o))
        return;
    len = ebpfMonSpanPack(span, record);
    for (unsigned i = ebpfMonOtlpTraces; i <= ebpfMonOtlpZipkin; i++)
        if (epicsAtomicGetIntT(&o->active[i]))
            ebpfMonRecordQueueAdd(o->queue[i], 0, record, len);
}

int ebpfMonOtlpHasRoom(void *otlp, unsigned spans)
{
    ebpfMonOtlp *o = otlp;
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
    return o->http || !some ? 0 : startOtlpThread(o);
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
    int some, isStopped;

    epicsMutexMustLock(o->lock);
    commanded = o->commanded;
    isStopped = !o->http;
    c = o->wanted;
    epicsMutexUnlock(o->lock);
    if (commanded && isStopped) /* an earlier start of the monitor failed, which stopped it */
        configureSignals(o, &c, commanded);
    if (commanded == ALL)
        return;
    some = ebpfMonOtlpConfReadEnvironment(&c, why, sizeof(why));
    if (some > 0) {
        configureSignals(o, &c, ALL & ~commanded);
    } else if (some < 0) {
        errlogSevPrintf(errlogMajor, "ebpfMon: OTLP: %s. Nothing is sent\n", why);
        if (!commanded) {
            ebpfMonOtlpValues values = { .state = ebpfMonLogTrouble };

            strcpy(values.message, why);
            publishOtlp(o, &values);
        }
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
    o->stopping = 0;
    epicsMutexUnlock(o->lock);
}

void ebpfMonOtlpResetLost(void *otlp)
{
    ebpfMonOtlp *o = otlp;
    epicsMutexMustLock(o->lock);
    o->lostBase = 0;
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        o->lostBase += ebpfMonOtlpCountsSumLost(&o->counts[i]);
    epicsMutexUnlock(o->lock);
}

void ebpfMonOtlpReport(void *otlp, int level)
{
    ebpfMonOtlp *o = otlp;
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
