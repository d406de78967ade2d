/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>
#include <epicsString.h>

#include "otlp/otlpHttp.h"

#define CONNECT_MOST 5000L /* ms */
#define RETRY_MOST   300.0 /* s; the longest pause that a server may request */

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

int ebpfMonOtlpHttpSetTarget(ebpfMonOtlpHttp *h, ebpfMonOtlpSignal signal, const ebpfMonOtlpTarget *target)
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
        r->retryAfter = after < 0 ? 0 : (double)after < RETRY_MOST ? (double)after : RETRY_MOST;
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
