/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of OTLP over HTTP, by libcurl: one at a time for each signal. One thread, but for the waking. */
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

/* NULL without memory. */
ebpfMonOtlpHttp *ebpfMonOtlpHttpOpen(ebpfMonHttpDone done, void *arg);
void ebpfMonOtlpHttpClose(ebpfMonOtlpHttp *http);

/* Where the requests of this signal go from now on; one under way is given up. 0, or -1 without memory. */
int ebpfMonOtlpHttpTarget(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const ebpfMonOtlpTarget *target);

/* The body must stay until done. 0, or -1 without memory: nothing is done then. */
int ebpfMonOtlpHttpPost(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const char *body, size_t len);
void ebpfMonOtlpHttpAbort(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal);

/* Sends and receives for so long; earlier when something is done or it is woken. */
void ebpfMonOtlpHttpWait(ebpfMonOtlpHttp *http, double seconds);

/* Any thread. */
void ebpfMonOtlpHttpWake(ebpfMonOtlpHttp *http);

#endif
