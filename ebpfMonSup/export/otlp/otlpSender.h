/* SPDX-License-Identifier: BSD-3-Clause */
/* One signal on its way: queue, batch, requests, back-off. Only the thread of OTLP, but the queue. */
#ifndef EBPFMON_OTLPSENDER_H
#define EBPFMON_OTLPSENDER_H

#include "export/otlp/exemplar.h"
#include "export/otlp/otlpConf.h"
#include "export/otlp/otlpHttp.h"
#include "export/destination.h"
#include "export/recordQueue.h"

#define EBPFMON_OTLP_QUEUE (8u << 20)
#define EBPFMON_OTLP_CHUNK (64u << 10)  /* bytes of records taken from the queue at a time */
#define EBPFMON_OTLP_BATCH (512u << 10) /* bytes of JSON, as far as whole items go */
#define EBPFMON_OTLP_ITEMS 512

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

typedef struct {
    ebpfMonOtlpSignal signal;
    ebpfMonRecordQueue *queue;  /* NULL: of metrics, or never asked for */
    ebpfMonDestination out;    /* what is wrong, and when to try again */
    ebpfMonOtlpCounts counts;
    uint64_t dropped;     /* by the queue, as counted last */
    uint8_t *chunk;       /* records that are in no batch yet */
    size_t   at, have;
    char    *text;        /* the batch */
    size_t   len;
    unsigned items;
    ebpfMonSpanService service; /* of the last span in it */
    ebpfMonExemplars *exemplars; /* NULL: spans are none */
    double   begun;       /* s: its first item */
    double   tried;       /* s: its first request; 0: it may still grow */
    int      closed, inFlight;
} ebpfMonOtlpSender;

/* Memory for a signal that is to be sent. 0, or -1 without. */
int ebpfMonOtlpSenderReady(ebpfMonOtlpSender *s);

/* Another target, or none: then what is waiting is lost. */
void ebpfMonOtlpSenderTarget(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, const ebpfMonOtlpConf *conf);

/* From the queue to the batch. */
void ebpfMonOtlpSenderFill(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, double now);

/* A batch that is given as a whole, in place of one that waits to be sent again. */
void ebpfMonOtlpSenderSet(ebpfMonOtlpSender *s, const ebpfMonOtlpConf *conf, const char *text, size_t len,
                          unsigned items, double now);

/* Sends the batch if it is time; at once when "now or never". */
void ebpfMonOtlpSenderPost(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http, int atOnce, double now);

/* What came of it. endBy: s when all ends, 0: it goes on. */
void ebpfMonOtlpSenderDone(ebpfMonOtlpSender *s, const ebpfMonHttpResult *result, const ebpfMonOtlpConf *conf,
                           double endBy, double now);

/* Everything that waits is lost. */
void ebpfMonOtlpSenderDiscard(ebpfMonOtlpSender *s, ebpfMonOtlpHttp *http);

int ebpfMonOtlpSenderIdle(const ebpfMonOtlpSender *s);
void ebpfMonOtlpSenderFree(ebpfMonOtlpSender *s);

uint64_t ebpfMonOtlpLostOf(const ebpfMonOtlpCounts *counts);

/* The counts as they are now, with what the queue dropped. peak: of the queue, percent. */
const ebpfMonOtlpCounts *ebpfMonOtlpSenderCount(ebpfMonOtlpSender *s, double *peak);

#endif
