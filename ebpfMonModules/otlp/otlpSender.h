/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends one signal: makes batches from its queue, makes requests, and waits longer after each failure. One thread; any
 * thread may add to the queue. Times are monotonic seconds.
 */
#ifndef EBPFMON_OTLPSENDER_H
#define EBPFMON_OTLPSENDER_H

#include "export/shared/destination.h"
#include "export/shared/jsonGen.h"
#include "export/shared/recordQueue.h"
#include "model/put.h"
#include "otlp/otlpConf.h"
#include "otlp/otlpMetrics.h"

/* --- HTTP ---
 *
 * Makes the requests of OTLP over HTTP, with libcurl: one at a time for each signal. One thread; any thread may wake
 * it. */

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

/* Begins a request. "body" stays the caller's, and must not change until "done" is called. 0, or -1: no memory, and
 * nothing is sent. */
int ebpfMonOtlpHttpPost(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal, const char *body, size_t len);
/* Aborts a request; "done" is not called for it. */
void ebpfMonOtlpHttpAbort(ebpfMonOtlpHttp *http, ebpfMonOtlpSignal signal);

/* Sends and receives for "seconds" at most. Returns earlier if a request is done, or if it is woken. Calls "done". */
void ebpfMonOtlpHttpWait(ebpfMonOtlpHttp *http, double seconds);

/* Wakes the thread that waits. Any thread. */
void ebpfMonOtlpHttpWake(ebpfMonOtlpHttp *http);

/* --- sending --- */

#define EBPFMON_OTLP_QUEUE (8u << 20)
#define EBPFMON_OTLP_CHUNK (64u << 10)  /* bytes of records that are taken from the queue at a time */
#define EBPFMON_OTLP_BATCH (512u << 10) /* bytes of JSON in a batch; the last item may exceed this */
#define EBPFMON_OTLP_ITEMS 512
#define EBPFMON_OTLP_METRICS (2u << 20) /* bytes of JSON of metrics, which are not split: 256 IOCs with long names,
                                         * 100 roots, 200 rows of queries */

/* The reasons why items were lost. */
typedef enum {
    ebpfMonOtlpQueueFull,
    ebpfMonOtlpRefused,   /* the collector refused them */
    ebpfMonOtlpGaveUp,    /* the collector did not accept them in time, or the monitor ended */
    ebpfMonOtlpUnfit,     /* they are too long for JSON, or there was no memory */
    ebpfMonOtlpReasons
} ebpfMonOtlpReason;

extern const char *const ebpfMonOtlpReasonNames[ebpfMonOtlpReasons];

typedef struct {
    uint64_t sent;        /* items that the collector accepted */
    uint64_t lost[ebpfMonOtlpReasons];
    uint64_t requests;
    int      trouble;
    char     why[256];
} ebpfMonOtlpCounts;

/* Set it to 0, except "signal", before the first use. It must not move afterwards. */
typedef struct {
    ebpfMonOtlpSignal signal;
    ebpfMonRecordQueue *queue;  /* NULL: the signal is metrics, or was never configured */
    ebpfMonDestination out;    /* its trouble, and when to try again */
    ebpfMonOtlpCounts counts;
    uint64_t dropped;     /* items that the queue had dropped at the last call of GetCounts */
    uint8_t *chunk;       /* records that are not in a batch yet */
    size_t   at, have;
    char    *text;        /* the batch, as JSON */
    size_t   len;
    unsigned items;
    ebpfMonSpanService service; /* service of the last span in it */
    ebpfMonExemplars *exemplars; /* slow spans are noted here; NULL: nowhere */
    double   begun;       /* s; time of its first item */
    double   tried;       /* s; time of its first request; 0: it may still grow */
    int      closed;      /* nonzero: the batch has its tail */
    int      inFlight;    /* nonzero: its request is not done */
    unsigned short random[3]; /* for erand48(); all 0: it has no seed yet */
    ebpfMonJson json;
    ebpfMonPut  put;      /* this one and the next: what was read from the queue last; members, because they are too
                           * large for a stack */
    ebpfMonSpan span;
} ebpfMonOtlpSender;

/* Allocates the batch. 0, or -1: no memory. */
int ebpfMonOtlpSenderAllocate(ebpfMonOtlpSender *s);

/* Sets another target, or none: then all that waits is lost. */
void ebpfMonOtlpSenderSetTarget(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, const ebpfMonOtlpConf *conf);

/* Moves items from the queue to the batch. */
void ebpfMonOtlpSenderReadQueue(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now);

/* Sets a batch that the caller has made; it replaces one that waits. "text": its items, with commas. */
void ebpfMonOtlpSenderSetBatch(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const char *text, size_t len,
                               unsigned items, double now);

/* Sends the batch if it is large or old enough, and it is time to try. "atOnce": whatever its size and age. */
void ebpfMonOtlpSenderPostBatch(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, int atOnce, double now);

/* Handles the result of a request. "endBy": time at which the monitor ends; 0: it does not end. */
void ebpfMonOtlpSenderFinishRequest(ebpfMonOtlpSender *s, const ebpfMonHttpResult *result, const ebpfMonOtlpConf *conf,
                                    double endBy, double now);

/* Drops everything that waits, and counts it as lost. */
void ebpfMonOtlpSenderDiscard(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http);

/* Nonzero: nothing waits, neither in the batch nor in the queue. */
int ebpfMonOtlpSenderIsIdle(const ebpfMonOtlpSender *s);

/* Frees its memory; afterwards it can be allocated again. The counts stay. */
void ebpfMonOtlpSenderFree(ebpfMonOtlpSender *s);

/* Returns the sum of all reasons. */
uint64_t ebpfMonOtlpCountsSumLost(const ebpfMonOtlpCounts *counts);

/* Returns the counts at present, with the items that the queue dropped. *peak gets the maximum use of the queue since
 * the last call, in percent. */
const ebpfMonOtlpCounts *ebpfMonOtlpSenderGetCounts(ebpfMonOtlpSender *s, double *peak);

/* --- spans in a queue ---
 *
 * A span in a queue: without the unused ends of its texts. Any thread.
 */

#define EBPFMON_SPAN_PACK_MAX (sizeof(ebpfMonSpan) + 64)

/* Writes to "buf", which has EBPFMON_SPAN_PACK_MAX bytes. Returns how many are used. */
size_t ebpfMonSpanPack(const ebpfMonSpan *span, uint8_t *buf);
/* Reads what ebpfMonSpanPack wrote. Unused bytes of "span" stay as they were. */
void ebpfMonSpanUnpack(const uint8_t *buf, ebpfMonSpan *span);

#endif
