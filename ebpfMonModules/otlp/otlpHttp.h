/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the requests of OTLP over HTTP, with libcurl: one at a time for each signal. One thread; any thread may wake
 * it. */
#ifndef EBPFMON_OTLPHTTP_H
#define EBPFMON_OTLPHTTP_H

#include "otlp/otlpConf.h"

#define EBPFMON_OTLP_ANSWER 4096 /* bytes of an answer that are kept */

/* See the specification, protocol/otlp.md, "OTLP/HTTP Response". */
typedef enum {
    ebpfMonHttpAccepted,
    ebpfMonHttpAgain,   /* no answer, or none of HTTP, or status 429, 502, 503, 504: try again */
    ebpfMonHttpRefused  /* any other status: the same request would be refused again */
} ebpfMonHttpOutcome;

typedef struct {
    ebpfMonHttpOutcome outcome;
    double retryAfter;  /* s after which the server wants the next try; 0: it did not tell */
    char   why[192];    /* what is wrong, and what to do */
    char   answer[EBPFMON_OTLP_ANSWER];
    size_t answerLen;
} ebpfMonHttpResult;

typedef struct ebpfMonOtlpHttp ebpfMonOtlpHttp;
typedef void (*ebpfMonHttpDone)(void *arg, ebpfMonOtlpSignal signal, const ebpfMonHttpResult *result);

/* "done" receives the result of each request. NULL: no memory. */
ebpfMonOtlpHttp *ebpfMonOtlpHttpNew(ebpfMonHttpDone done, void *arg);
void ebpfMonOtlpHttpFree(ebpfMonOtlpHttp *http);

/* Sets the target for the requests of this signal. A request that is not done is aborted. 0, or -1: no memory. */
int ebpfMonOtlpHttpSetTarget(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const ebpfMonOtlpTarget *target);

/* Begins a request. "body" stays the caller's, and must not change until "done" is called. 0, or -1: no memory, and
 * nothing is sent. */
int ebpfMonOtlpHttpPost(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const char *body, size_t len);
/* Aborts a request; "done" is not called for it. */
void ebpfMonOtlpHttpAbort(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal);

/* Sends and receives for "seconds" at most. Returns earlier if a request is done, or if it is woken. Calls "done". */
void ebpfMonOtlpHttpWait(ebpfMonOtlpHttp *http, double seconds);

/* Wakes the thread that waits. Any thread. */
void ebpfMonOtlpHttpWake(ebpfMonOtlpHttp *http);

#endif
