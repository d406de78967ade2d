/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What commands (otlp.c, any thread) and the thread that sends (otlpThread.c, otlpState.c) share. Only the thread uses
 * the senders. Commands write what they want to "wanted", and read "counts".
 */
#ifndef EBPFMON_OTLPTHREAD_H
#define EBPFMON_OTLPTHREAD_H

#include <epicsMutex.h>

#include "common/worker.h"
#include "export/otlp/otlpMetrics.h"
#include "export/otlp/otlpSender.h"
#include "export/shared/recordQueue.h"
#include "model/published.h"

/* Only for the thread. */
typedef struct {
    ebpfMonOtlpConf conf;           /* the configuration that applies now */
    unsigned generation;            /* that of the configuration which applies now */
    ebpfMonOtlpSender sender[ebpfMonOtlpSignals];
    ebpfMonExemplars exemplars;
    ebpfMonOtlpNumbers numbers;
    ebpfMonOtlpSinces sinces;
    ebpfMonJson json;               /* writes the metrics */
    char     metrics[EBPFMON_OTLP_METRICS];
    double   nextMetrics;           /* s, monotonic; also the times below */
    double   endBy;                 /* time of the end; 0: it does not end */
    double   publishAt;
    double   queueFullUntil;        /* until then the state tells that the queue was full */
    int      troubleBefore;         /* nonzero: there was trouble at the last publication */
    struct { double at, rate; uint64_t sent; } rate; /* items per second at the last publication */
} ebpfMonOtlpOwn;

typedef struct ebpfMonOtlp {
    int active[ebpfMonOtlpSignals]; /* atomic; nonzero: puts or spans are queued */
    ebpfMonRecordQueue *queue[ebpfMonOtlpSignals]; /* made under the lock, before "active" is set, and then kept */
    ebpfMonQueryResults *results;   /* has a lock of its own; never changes. NULL: there are none */
    epicsMutexId lock;              /* protects the members below, except "own" */
    unsigned commanded;             /* signals that a command has set, a bit each; the environment does not apply to
                                     * them */
    ebpfMonOtlpConf wanted;
    unsigned generation;            /* changes with "wanted" */
    ebpfMonOtlpHttp *http;          /* commands use it to wake the thread; NULL: the thread does not run */
    ebpfMonWorker *worker;          /* NULL: there is no thread */
    int      stopping;              /* nonzero: the thread shall end, not later than stopBy (s, monotonic) */
    double   stopBy;
    ebpfMonOtlpCounts counts[ebpfMonOtlpSignals]; /* written by the thread */
    double   queuePeak;             /* written by the thread; percent */
    uint64_t lostBase;              /* losses until the last reset */
    ebpfMonOtlpOwn own;
} ebpfMonOtlp;

/* Starts the thread, under the lock. 0, or -1: no memory, or an earlier thread still runs. */
int ebpfMonOtlpThreadStart(ebpfMonOtlp *otlp);

/* Publishes state and counts: once a second, when the state changes, or at once ("force"). Only the thread. */
void ebpfMonOtlpPublishState(ebpfMonOtlp *otlp, double now, int force);

/* What ebpfMonOtlpPublish publishes. Any thread. */
typedef struct {
    ebpfMonLogState state;
    const char *why;
    uint64_t sent, lost;
    double   rate, queue;
} ebpfMonOtlpShown;

void ebpfMonOtlpPublish(const ebpfMonOtlpShown *shown);

#endif
