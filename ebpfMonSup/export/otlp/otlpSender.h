/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One signal on its way: from the queue to batches, requests, and back-off when they fail. One thread; any thread may
 * add to the queue. Times in seconds, monotonic.
 */
#ifndef EBPFMON_OTLPSENDER_H
#define EBPFMON_OTLPSENDER_H

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpConf.h"
#include "export/otlp/otlpHttp.h"
#include "export/shared/destination.h"
#include "export/shared/jsonGen.h"
#include "export/shared/recordQueue.h"
#include "model/put.h"

#define EBPFMON_OTLP_QUEUE (8u << 20)
#define EBPFMON_OTLP_CHUNK (64u << 10)  /* bytes of records taken from the queue at a time */
#define EBPFMON_OTLP_BATCH (512u << 10) /* bytes of JSON, as far as whole items go */
#define EBPFMON_OTLP_ITEMS 512
#define EBPFMON_OTLP_METRICS (2u << 20) /* the same of metrics: 256 IOCs with long names, 100 roots, 200 rows of queries; they are not split */

/* Why items were lost. */
typedef enum {
    ebpfMonOtlpQueueFull,
    ebpfMonOtlpRefused,   /* by the collector */
    ebpfMonOtlpGaveUp,    /* it did not take them in time, or the monitor ended */
    ebpfMonOtlpUnfit,     /* too long for JSON, or no memory */
    ebpfMonOtlpReasons
} ebpfMonOtlpReason;

extern const char *const ebpfMonOtlpReasonNames[ebpfMonOtlpReasons];

typedef struct {
    uint64_t sent;        /* accepted by the collector */
    uint64_t lost[ebpfMonOtlpReasons];
    uint64_t requests;
    int      trouble;
    char     why[256];
} ebpfMonOtlpCounts;

/* Set to 0, but for the signal, before the first use. It must not move afterwards. */
typedef struct {
    ebpfMonOtlpSignal signal;
    ebpfMonRecordQueue *queue;  /* NULL: of metrics, or never configured */
    ebpfMonDestination out;    /* what is wrong, and when to try again */
    ebpfMonOtlpCounts counts;
    uint64_t dropped;     /* by the queue, as of the last call of GetCounts */
    uint8_t *chunk;       /* records that are in no batch yet */
    size_t   at, have;
    char    *text;        /* the batch */
    size_t   len;
    unsigned items;
    ebpfMonSpanService service; /* of the last span in it */
    ebpfMonExemplars *exemplars; /* where slow spans are noted; NULL: nowhere */
    double   begun;       /* s: its first item */
    double   tried;       /* s: its first request; 0: it may still grow */
    int      closed;      /* the batch has its tail */
    int      inFlight;    /* its request is under way */
    unsigned short random[3]; /* of erand48; all 0: not seeded yet */
    ebpfMonJson json;
    ebpfMonPut  put;      /* these two: what was read from the queue last; here because they are large for a stack */
    ebpfMonSpan span;
} ebpfMonOtlpSender;

/* Memory for the batch. 0, or -1 without. */
int ebpfMonOtlpSenderAllocate(ebpfMonOtlpSender *s);

/* Another target, or none: then what waits is lost. */
void ebpfMonOtlpSenderSetTarget(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, const ebpfMonOtlpConf *conf);

/* From the queue to the batch. */
void ebpfMonOtlpSenderReadQueue(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now);

/* A batch that the caller has made, in place of one that waits to be sent again. text: its items, with commas. */
void ebpfMonOtlpSenderSetBatch(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const char *text, size_t len,
                               unsigned items, double now);

/* Sends the batch if it is large or old enough, and the time to try again has come. atOnce: of any size and age. */
void ebpfMonOtlpSenderPostBatch(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, int atOnce, double now);

/* The result of the request. endBy: when the monitor ends, 0: it does not end. */
void ebpfMonOtlpSenderFinishRequest(ebpfMonOtlpSender *s, const ebpfMonHttpResult *result, const ebpfMonOtlpConf *conf,
                                    double endBy, double now);

/* Everything that waits is lost. */
void ebpfMonOtlpSenderDiscard(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http);

/* Nonzero: nothing waits, neither in the batch nor in the queue. */
int ebpfMonOtlpSenderIsIdle(const ebpfMonOtlpSender *s);

/* Frees what is in it; after that it may be allocated again. The counts stay. */
void ebpfMonOtlpSenderFree(ebpfMonOtlpSender *s);

/* For all reasons. */
uint64_t ebpfMonOtlpCountsSumLost(const ebpfMonOtlpCounts *counts);

/* The counts as they are now, with what the queue has dropped. peak: of the queue since the last call, percent. */
const ebpfMonOtlpCounts *ebpfMonOtlpSenderGetCounts(ebpfMonOtlpSender *s, double *peak);

#endif
