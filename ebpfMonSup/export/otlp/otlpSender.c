/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "export/otlp/otlpJson.h"
#include "export/otlp/otlpSender.h"
#include "export/putPack.h"
#include "export/otlp/spanPack.h"
#include "export/otlp/zipkinJson.h"

#define HEAD_MAX   (24u << 10)
#define ITEM_MAX   (64u << 10)
#define TAIL_MAX   16u
#define BATCH_AGE  1.0  /* s */
#define RETRY_MOST 30.0 /* s */

const char *const ebpfMonOtlpReasonNames[ebpfMonOtlpReasons] = {"queue full", "refused", "given up", "unfit"};

int ebpfMonOtlpSenderReady(ebpfMonOtlpSender *s)
{
    if (!s->text)
        s->text = malloc(EBPFMON_OTLP_BATCH + 2 * HEAD_MAX + ITEM_MAX + TAIL_MAX);
    if (!s->chunk)
        s->chunk = malloc(EBPFMON_OTLP_CHUNK);
    return s->text && s->chunk ? 0 : -1;
}

void ebpfMonOtlpSenderFree(ebpfMonOtlpSender *s)
{
    free(s->text);
    free(s->chunk);
    s->text = NULL;
    s->chunk = NULL;
}

static void lose(ebpfMonOtlpSender *s, ebpfMonOtlpReason reason, uint64_t items)
{
    s->counts.lost[reason] += items;
    ebpfMonDestinationAddLost(&s->out, items);
}

static void clear(ebpfMonOtlpSender *s)
{
    s->items = 0;
    s->len = 0;
    s->tried = 0;
    s->closed = s->inFlight = 0;
}

/* Nonzero when there was one: records of the chunk, then of the queue. */
static int next(ebpfMonOtlpSender *s, const uint8_t **record, size_t *len)
{
    if (s->at >= s->have) {
        s->at = 0;
        s->have = s->queue ? ebpfMonRecordQueueTake(s->queue, s->chunk, EBPFMON_OTLP_CHUNK) : 0;
        if (!s->have)
            return 0;
    }
    memcpy(len, s->chunk + s->at, sizeof(*len));
    *record = s->chunk + s->at + sizeof(*len);
    s->at += sizeof(*len) + *len;
    return 1;
}

void ebpfMonOtlpSenderDiscard(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http)
{
    const uint8_t *record;
    size_t len;
    uint64_t n = s->items;

    if (s->inFlight)
        ebpfMonOtlpHttpAbort(http, s->signal);
    while (s->chunk && next(s, &record, &len))
        n++;
    if (s->queue) /* values of metrics are no loss: the next ones have them in */
        lose(s, ebpfMonOtlpGaveUp, n);
    clear(s);
}

/* Who may read at a collector need not be who reads our logs. */
static void withoutPassword(char *dst, size_t size, const char *url)
{
    const char *host = strstr(url, "://"), *at;

    host = host ? host + 3 : url;
    at = memchr(host, '@', strcspn(host, "/?#"));
    snprintf(dst, size, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

void ebpfMonOtlpSenderTarget(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, const ebpfMonOtlpConf *conf)
{
    const ebpfMonOtlpTarget *t = &conf->target[s->signal];
    char url[200];

    s->inFlight = 0;
    s->tried = 0;
    s->out.trouble = 0;
    s->out.retryAt = s->out.backoff = 0;
    withoutPassword(url, sizeof(url), t->url);
    snprintf(s->out.name, sizeof(s->out.name), "%s%s %s", s->signal == ebpfMonOtlpZipkin ? "" : "OTLP ",
             ebpfMonOtlpSignalName(s->signal), url);
    if (ebpfMonOtlpHttpTarget(http, s->signal, t))
        ebpfMonDestinationSetTrouble(&s->out, 0, 0, "out of memory, nothing is sent");
    if (!t->url[0])
        ebpfMonOtlpSenderDiscard(s, http);
}

/* Nonzero when the head does not fit. */
static int open(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now)
{
    clear(s);
    s->begun = now;
    s->len = ebpfMonOtlpHead(s->signal, conf, s->text, HEAD_MAX);
    return !s->len;
}

/* Behind what is there; length, 0: it does not fit. */
static size_t addPut(const uint8_t *record, size_t len, char *to, int more)
{
    static ebpfMonPut put;
    const char *who = (const char *)record; /* "who" and "origin" stand before the packed put */
    size_t whoLen = strlen(who) + 1, n;
    struct timespec t;

    ebpfMonPutUnpack(record + whoLen + strlen(who + whoLen) + 1, len - whoLen - strlen(who + whoLen) - 1, &put);
    strcpy(put.who, who);
    strcpy(put.origin, who + whoLen);
    to[0] = ',';
    clock_gettime(CLOCK_REALTIME, &t);
    n = ebpfMonOtlpLogRecord(&put, (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, to + more, ITEM_MAX);
    return n ? n + (size_t)more : 0;
}

static size_t addSpan(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const ebpfMonSpan *span, char *to)
{
    int more = s->items > 0, same = more && memcmp(&span->service, &s->service, sizeof(s->service)) == 0;
    size_t at = 0, n;

    if (s->signal == ebpfMonOtlpZipkin || same) {
        if (more)
            to[at++] = ',';
    } else {
        if (more)
            at = strlen(strcpy(to, EBPFMON_OTLP_SERVICE_TAIL ","));
        n = ebpfMonOtlpServiceHead(&span->service, conf, to + at, HEAD_MAX - at);
        if (!n)
            return 0;
        at += n;
    }
    n = s->signal == ebpfMonOtlpZipkin ? ebpfMonZipkinItem(span, conf, to + at, ITEM_MAX) :
        ebpfMonOtlpSpan(span, to + at, ITEM_MAX);
    if (!n)
        return 0;
    s->service = span->service;
    if (s->exemplars)
        ebpfMonExemplarAdd(s->exemplars, span);
    return at + n;
}

void ebpfMonOtlpSenderFill(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now)
{
    static ebpfMonSpan span;
    const uint8_t *record;
    size_t len, n;

    while (!s->closed && s->items < EBPFMON_OTLP_ITEMS && s->len < EBPFMON_OTLP_BATCH && next(s, &record, &len)) {
        if (!s->items && open(s, conf, now)) {
            lose(s, ebpfMonOtlpUnfit, 1);
            continue;
        }
        if (s->signal == ebpfMonOtlpLogs) {
            n = addPut(record, len, s->text + s->len, s->items > 0);
        } else {
            memset(&span.service, 0, sizeof(span.service)); /* so that equal ones are equal in all bytes */
            ebpfMonSpanUnpack(record, &span);
            n = addSpan(s, conf, &span, s->text + s->len);
        }
        if (!n) {
            lose(s, ebpfMonOtlpUnfit, 1);
            continue;
        }
        s->items++;
        s->len += n;
    }
}

void ebpfMonOtlpSenderSet(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const char *text, size_t len,
                          unsigned items, double now)
{
    if (open(s, conf, now) || !len || len > EBPFMON_OTLP_BATCH) {
        lose(s, ebpfMonOtlpUnfit, items);
        clear(s);
        return;
    }
    memcpy(s->text + s->len, text, len);
    s->len += len;
    s->items = items;
    s->begun = now - BATCH_AGE;
}

void ebpfMonOtlpSenderPost(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, int atOnce, double now)
{
    const char *tail = ebpfMonOtlpTail(s->signal);

    if (!s->items || s->inFlight || now < s->out.retryAt)
        return;
    if (!s->closed) {
        if (!atOnce && s->items < EBPFMON_OTLP_ITEMS && s->len < EBPFMON_OTLP_BATCH && now - s->begun < BATCH_AGE)
            return;
        memcpy(s->text + s->len, tail, strlen(tail));
        s->len += strlen(tail);
        s->closed = 1;
    }
    if (!s->tried)
        s->tried = now;
    if (ebpfMonOtlpHttpPost(http, s->signal, s->text, s->len)) {
        ebpfMonDestinationSetTrouble(&s->out, now, RETRY_MOST, "out of memory, nothing is sent");
        return;
    }
    s->counts.requests++;
    s->inFlight = 1;
}

static void accepted(ebpfMonOtlpSender *s, const ebpfMonHttpResult *r, double now)
{
    char why[120];
    uint64_t rejected = ebpfMonOtlpRejected(r->answer, r->answerLen, why, sizeof(why));

    if (rejected > s->items)
        rejected = s->items;
    s->counts.sent += s->items - rejected;
    if (rejected) {
        lose(s, ebpfMonOtlpRefused, rejected);
        ebpfMonDestinationSetTrouble(&s->out, now, 0, "the collector refused some: %s", why[0] ? why : "it does not say why");
        s->out.backoff = 0;
    } else {
        ebpfMonDestinationSetWorking(&s->out);
        s->out.lostNow = 0;
    }
    clear(s);
}

/* 0 … 1, different in each monitor: those that lost their collector together do not come back together. */
static double chance(void)
{
    static unsigned short state[3];
    struct timespec t;

    if (!state[0] && !state[1] && !state[2]) {
        clock_gettime(CLOCK_REALTIME, &t);
        state[0] = (unsigned short)t.tv_nsec;
        state[1] = (unsigned short)(t.tv_nsec >> 16);
        state[2] = (unsigned short)getpid();
    }
    return erand48(state);
}

void ebpfMonOtlpSenderDone(ebpfMonOtlpSender *s, const ebpfMonHttpResult *r, const ebpfMonOtlpConf *conf, double endBy,
                           double now)
{
    int known = s->out.trouble;

    s->inFlight = 0;
    if (r->outcome == ebpfMonHttpAccepted) {
        accepted(s, r, now);
        return;
    }
    ebpfMonDestinationSetTrouble(&s->out, now, RETRY_MOST, "%s", r->why);
    s->out.retryAt = now + s->out.backoff * (0.5 + 0.5 * chance());
    if (r->retryAfter > 0 && s->out.retryAt < now + r->retryAfter)
        s->out.retryAt = now + r->retryAfter;
    if (r->outcome == ebpfMonHttpRefused) {
        lose(s, ebpfMonOtlpRefused, s->items);
        clear(s);
    } else if (s->queue && now - s->tried >= conf->giveUp) {
        lose(s, ebpfMonOtlpGaveUp, s->items);
        clear(s);
    }
    if (endBy && r->outcome == ebpfMonHttpAgain && (known || s->out.retryAt >= endBy))
        ebpfMonOtlpSenderDiscard(s, NULL);
}

int ebpfMonOtlpSenderIdle(const ebpfMonOtlpSender *s)
{
    ebpfMonRecordQueueState q = {0};

    if (s->queue)
        ebpfMonRecordQueueGetState(s->queue, &q);
    return !s->items && s->at >= s->have && !q.used;
}

uint64_t ebpfMonOtlpLostOf(const ebpfMonOtlpCounts *c)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < ebpfMonOtlpReasons; i++)
        n += c->lost[i];
    return n;
}

const ebpfMonOtlpCounts *ebpfMonOtlpSenderCount(ebpfMonOtlpSender *s, double *peak)
{
    ebpfMonRecordQueueState q;

    *peak = 0;
    if (s->queue) {
        ebpfMonRecordQueueGetState(s->queue, &q);
        lose(s, ebpfMonOtlpQueueFull, q.dropped - s->dropped);
        s->dropped = q.dropped;
        *peak = 100.0 * (double)q.peak / EBPFMON_OTLP_QUEUE;
    }
    s->counts.trouble = s->out.trouble;
    memcpy(s->counts.why, s->out.why, sizeof(s->counts.why));
    return &s->counts;
}
