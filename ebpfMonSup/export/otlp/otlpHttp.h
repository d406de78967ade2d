/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of OTLP over HTTP, by libcurl: one at a time for each signal. One thread; any thread may wake it. */
#ifndef EBPFMON_OTLPHTTP_H
#define EBPFMON_OTLPHTTP_H

#include "export/otlp/otlpConf.h"

#define EBPFMON_OTLP_ANSWER 4096 /* bytes that are kept of an answer */

/* Specification, protocol/otlp.md, "OTLP/HTTP Response". */
typedef enum {
    ebpfMonHttpAccepted,
    ebpfMonHttpAgain,   /* no answer, none of HTTP, or 429, 502, 503, 504 */
    ebpfMonHttpRefused  /* any other: the same would be refused again */
} ebpfMonHttpOutcome;

typedef struct {
    ebpfMonHttpOutcome outcome;
    double retryAfter;  /* s, 0: the server did not say */
    char   why[192];    /* what is wrong, and what to do */
    char   answer[EBPFMON_OTLP_ANSWER];
    size_t answerLen;
} ebpfMonHttpResult;

typedef struct ebpfMonOtlpHttp ebpfMonOtlpHttp;
typedef void (*ebpfMonHttpDone)(void *arg, ebpfMonOtlpSignal signal, const ebpfMonHttpResult *result);

/* done: gets the result of each request. NULL without memory. */
ebpfMonOtlpHttp *ebpfMonOtlpHttpNew(ebpfMonHttpDone done, void *arg);
void ebpfMonOtlpHttpFree(ebpfMonOtlpHttp *http);

/* Where the requests of this signal go from now on; a request under way is given up. 0, or -1 without memory. */
int ebpfMonOtlpHttpSetTarget(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const ebpfMonOtlpTarget *target);

/* The body must stay until "done" is called for it. 0, or -1 without memory: nothing is sent then. */
int ebpfMonOtlpHttpPost(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const char *body, size_t len);
/* Gives a request under way up; "done" is not called for it. */
void ebpfMonOtlpHttpAbort(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal);

/* Sends and receives for so long; returns earlier when a request is done, or when it is woken. Calls "done". */
void ebpfMonOtlpHttpWait(ebpfMonOtlpHttp *http, double seconds);

/* Any thread. */
void ebpfMonOtlpHttpWake(ebpfMonOtlpHttp *http);

#endif
