/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <stdint.h>
#include <curl/curl.h>
#include <epicsString.h>

#include "common/clock.h"
#include "export/shared/recordQueue.h"
#include "otlp/otlpJson.h"
#include "otlp/otlpSender.h"
#include "trace/span.h"

/* --- HTTP --- */

#define CONNECT_MOST 5000L /* ms */
#define RETRY_AFTER_MOST   300.0 /* s; the longest pause that a server may request */

typedef struct {
    CURL *easy;
    struct curl_slist *headers;
    int   busy;
    ebpfMonHttpResult result;
} signalTransfer;

struct ebpfMonOtlpHttp {
    CURLM *multi;
    ebpfMonHttpDone done;
    void  *arg;
    signalTransfer of[ebpfMonOtlpSignals];
};

ebpfMonOtlpHttp *ebpfMonOtlpHttpNew(ebpfMonHttpDone done, void *arg)
{
    ebpfMonOtlpHttp *h = calloc(1, sizeof(*h));

    if (!h)
        return NULL;
    h->done = done;
    h->arg = arg;
    h->multi = curl_multi_init();
    if (!h->multi) {
        free(h);
        return NULL;
    }
    return h;
}

void ebpfMonOtlpHttpAbort(ebpfMonOtlpHttp *h, ebpfMonOtlpSignal signal)
{
    signalTransfer *t = &h->of[signal];

    if (t->busy)
        curl_multi_remove_handle(h->multi, t->easy);
    t->busy = 0;
}

static void freeTransfer(ebpfMonOtlpHttp *h, ebpfMonOtlpSignal signal)
{
    signalTransfer *t = &h->of[signal];

    ebpfMonOtlpHttpAbort(h, signal);
    if (t->easy)
        curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    t->easy = NULL;
    t->headers = NULL;
}

void ebpfMonOtlpHttpFree(ebpfMonOtlpHttp *h)
{
    for (unsigned i = 0; i < ebpfMonOtlpSignals; i++)
        freeTransfer(h, (ebpfMonOtlpSignal)i);
    curl_multi_cleanup(h->multi);
    free(h);
}

/* Accepts an answer of any length, and keeps its begin. */
static size_t receiveAnswer(char *data, size_t one, size_t n, void *user)
{
    ebpfMonHttpResult *r = user;
    size_t room = sizeof(r->answer) - 1 - r->answerLen, len = one * n < room ? one * n : room;

    memcpy(r->answer + r->answerLen, data, len);
    r->answerLen += len;
    r->answer[r->answerLen] = 0;
    return one * n;
}

static int isLoopback(const char *url)
{
    CURLU *u = curl_url();
    char *host = NULL;
    int is = 0;

    if (u && !curl_url_set(u, CURLUPART_URL, url, 0) && !curl_url_get(u, CURLUPART_HOST, &host, 0))
        is = epicsStrCaseCmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 || strcmp(host, "[::1]") == 0;
    curl_free(host);
    curl_url_cleanup(u);
    return is;
}

static int addHeader(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);

    if (!more)
        return -1;
    *list = more;
    return 0;
}

static int setHeaders(signalTransfer *t, const ebpfMonOtlpPairs *pairs)
{
    char line[sizeof(pairs->text) + 4];
    const char *key = NULL, *value;
    int bad = addHeader(&t->headers, "Content-Type: application/json") ||
              addHeader(&t->headers, "Expect:"); /* do not wait for "100 Continue" */

    while (!bad && (key = ebpfMonOtlpPairsGetNext(pairs, key, &value))) {
        /* with ";" libcurl sends a header that is empty */
        snprintf(line, sizeof(line), value[0] ? "%s: %s" : "%s;", key, value);
        bad = addHeader(&t->headers, line);
    }
    return bad ? -1 : 0;
}

/* Sets the target for the requests of this signal. A request that is not done is aborted. 0, or -1: no memory. */
static int setTarget(ebpfMonOtlpHttp *h, ebpfMonOtlpSignal signal, const ebpfMonOtlpTarget *target)
{
    signalTransfer *t = &h->of[signal];

    freeTransfer(h, signal);
    if (!target->url[0])
        return 0;
    t->easy = curl_easy_init();
    if (!t->easy || setHeaders(t, &target->headers) || curl_easy_setopt(t->easy, CURLOPT_URL, target->url)) {
        freeTransfer(h, signal);
        return -1;
    }
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
    curl_easy_setopt(t->easy, CURLOPT_USERAGENT, "ebpfMon");
    curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(t->easy, CURLOPT_NOSIGNAL, 1L); /* libcurl must not use signals, because other threads do */
    curl_easy_setopt(t->easy, CURLOPT_FOLLOWLOCATION, 0L); /* puts and headers must go only to the configured address */
    curl_easy_setopt(t->easy, CURLOPT_TIMEOUT_MS, (long)(target->timeout * 1000));
    curl_easy_setopt(t->easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MOST);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, receiveAnswer);
    curl_easy_setopt(t->easy, CURLOPT_WRITEDATA, &t->result);
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, (char *)(uintptr_t)signal);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(t->easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L); /* a name server that hangs must not delay our end */
#endif
    if (isLoopback(target->url))
        curl_easy_setopt(t->easy, CURLOPT_PROXY, "");
    return 0;
}

int ebpfMonOtlpHttpPost(ebpfMonOtlpHttp *h, ebpfMonOtlpSignal signal, const char *body, size_t len)
{
    signalTransfer *t = &h->of[signal];

    if (!t->easy || t->busy)
        return -1;
    memset(&t->result, 0, sizeof(t->result));
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    if (curl_multi_add_handle(h->multi, t->easy))
        return -1;
    t->busy = 1;
    return 0;
}

/* What to do about a status of failure. */
static const char *getAdvice(long status)
{
    switch (status) {
    case 400: return "it does not understand what it got: does it take OTLP/HTTP, or Zipkin's spans, in JSON?";
    case 401: case 403: case 407: return "it wants other headers: see OTEL_EXPORTER_OTLP_HEADERS";
    case 404: case 405: return "the path is wrong, or it does not take this signal";
    case 413: return "raise the size of requests that it takes (1 MB)";
    case 415: return "it does not take JSON";
    case 429: return "it has too much to do";
    default:
        return status >= 500 ? "see the collector's log" : status >= 300 && status < 400 ?
               "it redirects, which is not followed: give that address" : "see the collector's log";
    }
}

/* What to do if there was no answer. */
static const char *getFailureAdvice(CURLcode code)
{
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL: case CURLE_WEIRD_SERVER_REPLY:
        return "what answers does not speak HTTP: give the collector's port for HTTP (OTLP 4318, Zipkin 9411)";
    case CURLE_COULDNT_RESOLVE_HOST:
        return "is the name of the collector right?";
    case CURLE_SSL_CONNECT_ERROR:
        return "does it speak https?";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "make this host trust the collector's certificate";
    case CURLE_OPERATION_TIMEDOUT:
        return "look after the collector, it is tried again by itself";
    default:
        return "start the collector, it is tried again by itself";
    }
}

static void setOutcome(signalTransfer *t, CURLcode code)
{
    ebpfMonHttpResult *r = &t->result;
    curl_off_t after = 0;
    char *where = NULL;
    long status = 0;

    if (code != CURLE_OK) {
        r->outcome = ebpfMonHttpAgain;
        snprintf(r->why, sizeof(r->why), "%.80s: %s", curl_easy_strerror(code), getFailureAdvice(code));
        return;
    }
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300) {
        r->outcome = ebpfMonHttpAccepted;
        return;
    }
    if (status == 429 || status == 502 || status == 503 || status == 504) {
        r->outcome = ebpfMonHttpAgain;
        curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &after);
        r->retryAfter = after < 0 ? 0 : (double)after < RETRY_AFTER_MOST ? (double)after : RETRY_AFTER_MOST;
    } else {
        r->outcome = ebpfMonHttpRefused;
    }
    curl_easy_getinfo(t->easy, CURLINFO_REDIRECT_URL, &where);
    snprintf(r->why, sizeof(r->why), "HTTP status %ld: %.90s%s%.60s", status, getAdvice(status), where ? " " : "",
             where ? where : "");
}

static void finishTransfers(ebpfMonOtlpHttp *h)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(h->multi, &left))) {
        CURLcode code = m->data.result;
        char *private = NULL;
        ebpfMonOtlpSignal signal;

        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
        signal = (ebpfMonOtlpSignal)(uintptr_t)private;
        setOutcome(&h->of[signal], code);
        ebpfMonOtlpHttpAbort(h, signal);
        h->done(h->arg, signal, &h->of[signal].result);
    }
}

void ebpfMonOtlpHttpWait(ebpfMonOtlpHttp *h, double seconds)
{
    int running;

    curl_multi_perform(h->multi, &running);
    finishTransfers(h);
    curl_multi_poll(h->multi, NULL, 0, (int)(seconds * 1000), NULL);
    curl_multi_perform(h->multi, &running);
    finishTransfers(h);
}

void ebpfMonOtlpHttpWake(ebpfMonOtlpHttp *h)
{
    curl_multi_wakeup(h->multi);
}

/* --- sending --- */

#define HEAD_MAX   (24u << 10)
#define ITEM_MAX   (64u << 10)
#define TAIL_MAX   16u
#define BATCH_AGE  1.0  /* s */
#define RETRY_MOST 30.0 /* s */

const char *const ebpfMonOtlpReasonNames[ebpfMonOtlpReasons] = {"queue full", "refused", "given up", "unfit"};

int ebpfMonOtlpSenderAllocate(ebpfMonOtlpSender *s)
{
    if (!s->text)
        s->text = malloc(EBPFMON_OTLP_METRICS + 2 * HEAD_MAX + ITEM_MAX + TAIL_MAX);
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
    ebpfMonJsonFree(&s->json);
}

static void addLost(ebpfMonOtlpSender *s, ebpfMonOtlpReason reason, uint64_t items)
{
    s->counts.lost[reason] += items;
    ebpfMonDestinationAddLost(&s->out, items);
}

static void clearBatch(ebpfMonOtlpSender *s)
{
    s->items = 0;
    s->len = 0;
    s->tried = 0;
    s->closed = s->inFlight = 0;
}

/* Gets the next record, from the chunk, or from the queue. Nonzero: there was one. */
static int getNext(ebpfMonOtlpSender *s, const uint8_t **record, size_t *len)
{
    if (s->at >= s->have) {
        s->at = 0;
        s->have = s->queue ? ebpfMonRecordQueueRead(s->queue, s->chunk, EBPFMON_OTLP_CHUNK) : 0;
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
    while (s->chunk && getNext(s, &record, &len))
        n++;
    if (s->queue) /* metrics are no loss, because the next values include them */
        addLost(s, ebpfMonOtlpGaveUp, n);
    clearBatch(s);
}

/* Copies the URL without user and password, because not everybody who reads our logs may know these. */
static void copyWithoutPassword(char *dst, size_t size, const char *url)
{
    const char *host = strstr(url, "://"), *at;

    host = host ? host + 3 : url;
    at = memchr(host, '@', strcspn(host, "/?#"));
    snprintf(dst, size, "%.*s%s", (int)(host - url), url, at ? at + 1 : host);
}

void ebpfMonOtlpSenderSetTarget(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, const ebpfMonOtlpConf *conf)
{
    const ebpfMonOtlpTarget *t = &conf->target[s->signal];
    char url[200];

    s->inFlight = 0;
    s->tried = 0;
    s->out.trouble = 0;
    s->out.retryAt = s->out.backoff = 0;
    copyWithoutPassword(url, sizeof(url), t->url);
    snprintf(s->out.name, sizeof(s->out.name), "%s%s %s", s->signal == ebpfMonOtlpZipkin ? "" : "OTLP ",
             ebpfMonOtlpSignalGetName(s->signal), url);
    if (setTarget(http, s->signal, t))
        ebpfMonDestinationSetTrouble(&s->out, 0, 0, "out of memory, nothing is sent");
    if (!t->url[0])
        ebpfMonOtlpSenderDiscard(s, http);
}

/* Nonzero: the head does not fit. */
static int beginBatch(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now)
{
    clearBatch(s);
    s->begun = now;
    s->len = ebpfMonOtlpWriteHead(&s->json, s->signal, conf, s->text, HEAD_MAX);
    return !s->len;
}

/* Appends a put at "to", with a comma before it if "more" is 1. Returns the length; 0: it does not fit. */
static size_t addPut(ebpfMonOtlpSender *s, const uint8_t *record, size_t len, char *to, int more)
{
    ebpfMonPut *put = &s->put;
    const char *who = (const char *)record; /* "who" and "origin" are before the packed put */
    size_t whoLen = strlen(who) + 1, n;

    ebpfMonPutUnpack(record + whoLen + strlen(who + whoLen) + 1, len - whoLen - strlen(who + whoLen) - 1, put);
    strcpy(put->who, who);
    strcpy(put->origin, who + whoLen);
    to[0] = ',';
    n = ebpfMonOtlpWriteLogRecord(&s->json, put, ebpfMonClockReal(), to + more, ITEM_MAX);
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
        n = ebpfMonOtlpWriteServiceHead(&s->json, &span->service, conf, to + at, HEAD_MAX - at);
        if (!n)
            return 0;
        at += n;
    }
    n = s->signal == ebpfMonOtlpZipkin ? ebpfMonZipkinWriteSpan(&s->json, span, conf, to + at, ITEM_MAX) :
        ebpfMonOtlpWriteSpan(&s->json, span, to + at, ITEM_MAX);
    if (!n)
        return 0;
    s->service = span->service;
    if (s->exemplars)
        ebpfMonExemplarAdd(s->exemplars, span);
    return at + n;
}

void ebpfMonOtlpSenderReadQueue(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now)
{
    ebpfMonSpan *span = &s->span;
    const uint8_t *record;
    size_t len, n;

    while (!s->closed && s->items < EBPFMON_OTLP_ITEMS && s->len < EBPFMON_OTLP_BATCH && getNext(s, &record, &len)) {
        if (!s->items && beginBatch(s, conf, now)) {
            addLost(s, ebpfMonOtlpUnfit, 1);
            continue;
        }
        if (s->signal == ebpfMonOtlpLogs) {
            n = addPut(s, record, len, s->text + s->len, s->items > 0);
        } else {
            memset(&span->service, 0, sizeof(span->service)); /* clears the unused bytes, so that equal services are
                                                               * equal in all bytes */
            ebpfMonSpanUnpack(record, span);
            n = addSpan(s, conf, span, s->text + s->len);
        }
        if (!n) {
            addLost(s, ebpfMonOtlpUnfit, 1);
            continue;
        }
        s->items++;
        s->len += n;
    }
}

void ebpfMonOtlpSenderSetBatch(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const char *text, size_t len,
                               unsigned items, double now)
{
    if (beginBatch(s, conf, now) || !len || len > EBPFMON_OTLP_METRICS) {
        addLost(s, ebpfMonOtlpUnfit, items);
        clearBatch(s);
        return;
    }
    memcpy(s->text + s->len, text, len);
    s->len += len;
    s->items = items;
    s->begun = now - BATCH_AGE;
}

void ebpfMonOtlpSenderPostBatch(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, int atOnce, double now)
{
    const char *tail = ebpfMonOtlpGetTail(s->signal);

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

static void noteAccepted(ebpfMonOtlpSender *s, const ebpfMonHttpResult *r, double now)
{
    char why[120];
    uint64_t rejected = ebpfMonOtlpReadRejected(r->answer, r->answerLen, why, sizeof(why));

    if (rejected > s->items)
        rejected = s->items;
    s->counts.sent += s->items - rejected;
    if (rejected) {
        addLost(s, ebpfMonOtlpRefused, rejected);
        ebpfMonDestinationSetTrouble(&s->out, now, 0, "the collector refused some: %s",
                                     why[0] ? why : "it does not say why");
        s->out.backoff = 0;
    } else {
        ebpfMonDestinationSetWorking(&s->out);
        s->out.lostNow = 0;
    }
    clearBatch(s);
}

/* Returns a number from 0 to 1, which is different in each monitor: monitors that lost their collector together must
 * not come back together. */
static double getChance(ebpfMonOtlpSender *s)
{
    uint64_t now = ebpfMonClockReal();

    if (!s->random[0] && !s->random[1] && !s->random[2] &&
        getrandom(s->random, sizeof(s->random), GRND_NONBLOCK) != (ssize_t)sizeof(s->random))
        memcpy(s->random, &now, sizeof(s->random));
    return erand48(s->random);
}

void ebpfMonOtlpSenderFinishRequest(ebpfMonOtlpSender *s, const ebpfMonHttpResult *r, const ebpfMonOtlpConf *conf,
                                    double endBy, double now)
{
    int known = s->out.trouble;

    s->inFlight = 0;
    if (r->outcome == ebpfMonHttpAccepted) {
        noteAccepted(s, r, now);
        return;
    }
    ebpfMonDestinationSetTrouble(&s->out, now, RETRY_MOST, "%s", r->why);
    s->out.retryAt = now + s->out.backoff * (0.5 + 0.5 * getChance(s));
    if (r->retryAfter > 0 && s->out.retryAt < now + r->retryAfter)
        s->out.retryAt = now + r->retryAfter;
    if (r->outcome == ebpfMonHttpRefused) {
        addLost(s, ebpfMonOtlpRefused, s->items);
        clearBatch(s);
    } else if (s->queue && now - s->tried >= conf->giveUp) {
        addLost(s, ebpfMonOtlpGaveUp, s->items);
        clearBatch(s);
    }
    if (endBy && r->outcome == ebpfMonHttpAgain && (known || s->out.retryAt >= endBy))
        ebpfMonOtlpSenderDiscard(s, NULL);
}

int ebpfMonOtlpSenderIsIdle(const ebpfMonOtlpSender *s)
{
    ebpfMonRecordQueueState q = {0};

    if (s->queue)
        ebpfMonRecordQueueGetState(s->queue, &q);
    return !s->items && s->at >= s->have && !q.used;
}

uint64_t ebpfMonOtlpCountsSumLost(const ebpfMonOtlpCounts *c)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < ebpfMonOtlpReasons; i++)
        n += c->lost[i];
    return n;
}

const ebpfMonOtlpCounts *ebpfMonOtlpSenderGetCounts(ebpfMonOtlpSender *s, double *peak)
{
    ebpfMonRecordQueueState q;

    *peak = 0;
    if (s->queue) {
        ebpfMonRecordQueueGetState(s->queue, &q);
        addLost(s, ebpfMonOtlpQueueFull, q.dropped - s->dropped);
        s->dropped = q.dropped;
        *peak = 100.0 * (double)ebpfMonRecordQueueTakePeak(s->queue) / EBPFMON_OTLP_QUEUE;
    }
    s->counts.trouble = s->out.trouble;
    memcpy(s->counts.why, s->out.why, sizeof(s->counts.why));
    return &s->counts;
}

/* --- spans in a queue --- */

typedef struct {
    uint8_t  trace[EBPFMON_TRACE_ID], id[EBPFMON_SPAN_ID], parent[EBPFMON_SPAN_ID];
    uint64_t start, end, latency;
    uint32_t pid, dropped;
    uint8_t  kind, status, links, attributes;
} fixedMembers;

#define TEXT(member) {offsetof(ebpfMonSpan, member), sizeof(((ebpfMonSpan *)0)->member)}

static const struct {
    size_t at, size;
} texts[] = {
    TEXT(name), TEXT(message), TEXT(root), TEXT(service.name), TEXT(service.version), TEXT(service.container),
};

static uint8_t *packText(uint8_t *to, const char *text, size_t size)
{
    size_t len = strnlen(text, size - 1);

    memcpy(to, text, len);
    to[len] = 0;
    return to + len + 1;
}

static const uint8_t *unpackText(const uint8_t *from, char *text)
{
    size_t size = strlen((const char *)from) + 1;

    memcpy(text, from, size);
    return from + size;
}

size_t ebpfMonSpanPack(const ebpfMonSpan *span, uint8_t *buf)
{
    unsigned n = span->attributes < EBPFMON_SPAN_ATTRIBUTES ? span->attributes : EBPFMON_SPAN_ATTRIBUTES;
    unsigned links = span->links < EBPFMON_SPAN_LINKS ? span->links : EBPFMON_SPAN_LINKS;
    fixedMembers f = {
        .start = span->start, .end = span->end, .latency = span->latency, .pid = span->service.pid,
        .dropped = span->dropped, .kind = (uint8_t)span->kind, .status = (uint8_t)span->status,
        .links = (uint8_t)links, .attributes = (uint8_t)n,
    };
    uint8_t *to = buf + sizeof(f);

    memcpy(f.trace, span->trace, sizeof(f.trace));
    memcpy(f.id, span->id, sizeof(f.id));
    memcpy(f.parent, span->parent, sizeof(f.parent));
    memcpy(buf, &f, sizeof(f));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        to = packText(to, (const char *)span + texts[i].at, texts[i].size);
    memcpy(to, span->link, links * sizeof(span->link[0]));
    to += links * sizeof(span->link[0]);
    for (unsigned i = 0; i < n; i++) {
        const ebpfMonSpanAttribute *a = &span->attribute[i];

        *to++ = (uint8_t)a->type;
        to = packText(to, a->key, sizeof(a->key));
        if (a->type == ebpfMonSpanText) {
            to = packText(to, a->text, sizeof(a->text));
        } else {
            memcpy(to, a->type == ebpfMonSpanDouble ? (const void *)&a->number : &a->integer, 8);
            to += 8;
        }
    }
    return (size_t)(to - buf);
}

void ebpfMonSpanUnpack(const uint8_t *buf, ebpfMonSpan *span)
{
    const uint8_t *from = buf + sizeof(fixedMembers);
    fixedMembers f;

    memcpy(&f, buf, sizeof(f));
    memcpy(span->trace, f.trace, sizeof(f.trace));
    memcpy(span->id, f.id, sizeof(f.id));
    memcpy(span->parent, f.parent, sizeof(f.parent));
    span->start = f.start;
    span->end = f.end;
    span->latency = f.latency;
    span->kind = f.kind;
    span->status = f.status;
    span->service.pid = f.pid;
    span->dropped = f.dropped;
    span->links = f.links;
    span->attributes = f.attributes;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        from = unpackText(from, (char *)span + texts[i].at);
    memcpy(span->link, from, f.links * sizeof(span->link[0]));
    from += f.links * sizeof(span->link[0]);
    for (unsigned i = 0; i < f.attributes; i++) {
        ebpfMonSpanAttribute *a = &span->attribute[i];

        a->type = *from++;
        from = unpackText(from, a->key);
        if (a->type == ebpfMonSpanText) {
            from = unpackText(from, a->text);
        } else {
            memcpy(a->type == ebpfMonSpanDouble ? (void *)&a->number : &a->integer, from, 8);
            from += 8;
        }
    }
}
