/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <errlog.h>

#include "common/text.h"
#include "export/otlp/otlpThread.h"

#define PUBLISH_EVERY  1.0  /* s */
#define QUEUE_FULL_FOR 10.0 /* s; for so long the state tells that the queue was full */
#define SMOOTH         0.3  /* weight of the last second in OTLP_RATE */

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

void ebpfMonOtlpPublishState(ebpfMonOtlp *o, double now, int force)
{
    ebpfMonOtlpOwn *own = &o->own;
    uint64_t sent, lost;
    double peak;
    unsigned on, bad;
    char why[512], first[360];

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
        strcpy(why, EBPFMON_NO_OTLP);
    } else {
        listTargets(own, why, sizeof(why));
    }
    own->troubleBefore = bad > 0;
    ebpfMonOtlpPublish(&(ebpfMonOtlpShown){
        .state = bad ? ebpfMonLogTrouble : on ? ebpfMonLogOk : ebpfMonLogNone, .why = why, .sent = sent,
        .lost = lost, .rate = on ? getRate(own, sent, now) : 0, .queue = peak,
    });
}
