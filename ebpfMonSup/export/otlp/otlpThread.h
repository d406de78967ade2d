/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What commands (otlp.c, any thread) and the thread that sends (otlpThread.c, otlpState.c) share. The thread alone has
 * the senders; commands leave what they want in "wanted", and read "counts".
 */
#ifndef EBPFMON_OTLPTHREAD_H
#define EBPFMON_OTLPTHREAD_H

#include <epicsMutex.h>

#include "common/worker.h"
#include "export/otlp/otlpMetrics.h"
#include "export/otlp/otlpSender.h"
#include "export/shared/recordQueue.h"
#include "model/published.h"

/* The thread's own. */
typedef struct {
    ebpfMonOtlpConf conf;           /* in force */
    unsigned generation;            /* of what was wanted: in force */
    ebpfMonOtlpSender sender[ebpfMonOtlpSignals];
    ebpfMonExemplars exemplars;
    ebpfMonOtlpNumbers numbers;
    ebpfMonOtlpSinces sinces;
    ebpfMonJson json;               /* for the metrics */
    char     metrics[EBPFMON_OTLP_METRICS];
    double   nextMetrics;           /* this and all below: s, monotonic */
    double   endBy;                 /* 0: it is not to end */
    double   publishAt;
    double   queueFullUntil;        /* so long the state says that the queue was full */
    int      troubleBefore;         /* as published last */
    struct { double at, rate; uint64_t sent; } rate; /* items a second, as published last */
} ebpfMonOtlpOwn;

typedef struct ebpfMonOtlp {
    int active[ebpfMonOtlpSignals]; /* atomic: puts, spans are queued */
    ebpfMonRecordQueue *queue[ebpfMonOtlpSignals]; /* made under the lock, before "active" is set; then kept */
    epicsMutexId lock;              /* of what follows, but "own" */
    unsigned commanded;             /* signals (bits) that a command has set: the environment does not count for them */
    ebpfMonOtlpConf wanted;
    unsigned generation;            /* of wanted */
    ebpfMonOtlpHttp *http;          /* for commands: to wake the thread; NULL: it does not run */
    ebpfMonWorker *worker;          /* NULL: there is no thread */
    int      stopping;              /* the thread is to end, not later than stopBy (s, monotonic) */
    double   stopBy;
    ebpfMonOtlpCounts counts[ebpfMonOtlpSignals]; /* written by the thread */
    double   queuePeak;             /* written by the thread: percent */
    uint64_t lostBase;              /* losses up to the last reset */
    ebpfMonOtlpOwn own;
} ebpfMonOtlp;

/* Under the lock. 0, or -1 without memory, or while an earlier thread still runs. */
int ebpfMonOtlpThreadStart(ebpfMonOtlp *otlp);

/* State and counts to what is published: once a second, when the state changes, or at once ("force"). The thread. */
void ebpfMonOtlpPublishState(ebpfMonOtlp *otlp, double now, int force);

/* To what is published. Any thread. */
typedef struct {
    ebpfMonLogState state;
    const char *why;
    uint64_t sent, lost;
    double   rate, queue;
} ebpfMonOtlpShown;

void ebpfMonOtlpPublish(const ebpfMonOtlpShown *shown);

#endif
