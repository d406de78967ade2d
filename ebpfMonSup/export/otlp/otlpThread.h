/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the commands (any thread) and the thread of OTLP, which alone has the senders: commands leave what they want,
 * and read counts.
 */
#ifndef EBPFMON_OTLPTHREAD_H
#define EBPFMON_OTLPTHREAD_H

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/otlp/otlpSender.h"
#include "model/published.h"

typedef struct {
    ebpfMonRecordQueue *queue[ebpfMonOtlpSignals]; /* made before something is put in, and then for ever */
    epicsMutexId lock; /* of the rest */
    unsigned commanded;/* signals (bits) for which the environment is not asked any more */
    ebpfMonOtlpConf wanted;
    unsigned generation;
    ebpfMonOtlpHttp *http; /* to wake the thread; NULL: there is none */
    epicsEventId ended;
    int stopping;      /* the thread is to end, not later than stopBy (s, monotonic) */
    double stopBy;
    /* by the thread */
    ebpfMonOtlpCounts counts[ebpfMonOtlpSignals];
    double queuePeak;  /* percent */
    /* by whoever resets */
    uint64_t lostBase;
} ebpfMonOtlpShare;

extern ebpfMonOtlpShare ebpfMonOtlp;

/* Under the lock. 0, or -1 without memory. */
int ebpfMonOtlpThreadStart(void);

/* To the PVs. */
typedef struct {
    ebpfMonLogState state;
    const char *why;
    uint64_t sent, lost;
    double   rate, queue;
} ebpfMonOtlpShown;

void ebpfMonOtlpPublish(const ebpfMonOtlpShown *shown);

#endif
