/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends puts, counts and spans to a collector, by OTLP over HTTP in JSON; and spans to Zipkin. A thread sends, and
 * nobody waits for it. What could not be sent is counted, by reason. Any thread may call these functions, except Free.
 */
#ifndef EBPFMON_OTLP_H
#define EBPFMON_OTLP_H

#include <epicsMutex.h>

#include "ebpfMonModule.h"
#include "common/worker.h"
#include "otlp/otlpConf.h"
#include "otlp/otlpMetrics.h"
#include "otlp/otlpSender.h"
#include "trace/span.h"
#include "export/shared/recordQueue.h"
#include "model/published.h"
#include "model/put.h"

/* What its PVs show. */
typedef struct {
    ebpfMonLogState state;
    char     message[256];
    uint64_t sent;           /* log records, data points and spans that were accepted */
    uint64_t lost;           /* items that were lost since the last reset */
    double   rate;           /* items sent per second */
    double   queue;          /* percent of the queue in use; the maximum of the last second */
} ebpfMonOtlpValues;

typedef struct ebpfMonOtlp ebpfMonOtlp;

/* Makes OTLP. The thread starts when there is something to send. "module" has its PVs. Returns NULL if there is no
 * memory. */
ebpfMonOtlp *ebpfMonOtlpNew(const ebpfMonModule *module);

/* Read them under ebpfMonModuleLock. */
const ebpfMonOtlpValues *ebpfMonOtlpGetValues(const ebpfMonOtlp *otlp);

/* Only after ebpfMonOtlpWaitStopped, when no other thread uses it any more. If its thread still runs, nothing is
 * freed. */
void ebpfMonOtlpFree(ebpfMonOtlp *otlp);

/* Sets the configuration from now on; a signal without a URL is not sent. 0; or -1, and a message was logged. */
int ebpfMonOtlpConfigure(ebpfMonOtlp *otlp, const ebpfMonOtlpConf *conf);

/* Configures the signals from the environment, except those that a command has set, and begins to send. */
void ebpfMonOtlpReadEnvironment(ebpfMonOtlp *otlp);

/* The commands. "url": the base, or "off"; of Zipkin the whole one. "signals": some of "logs,metrics,traces";
 * "headers": "Name=value,…", other characters as %XX. 0; or -1, and a message was logged. */
int ebpfMonOtlpSetCommand(ebpfMonOtlp *otlp, const char *url, const char *signals, const char *headers);
int ebpfMonOtlpSetZipkin(ebpfMonOtlp *otlp, const char *url);

/* Queues a copy of the put, and never waits. Does nothing without an endpoint for logs. */
void ebpfMonOtlpAddPut(ebpfMonOtlp *otlp, const ebpfMonPut *put);

/* Nonzero: there is an endpoint for spans. Takes no lock. */
int ebpfMonOtlpWantsSpans(void *otlp);

/* Queues a copy of the span, and never waits. Does nothing without an endpoint for spans. */
void ebpfMonOtlpAddSpan(void *otlp, const ebpfMonSpan *span);

/* Nonzero: so many spans will not be dropped for want of room, if nobody adds many others meanwhile. */
int ebpfMonOtlpHasRoom(void *otlp, unsigned spans);

/* Begins the end: the queues take nothing more, and what they have is sent, for "seconds" at most. Returns at once. */
void ebpfMonOtlpStop(ebpfMonOtlp *otlp, double seconds);

/* Waits for the end that ebpfMonOtlpStop began. Afterwards it can begin again. */
void ebpfMonOtlpWaitStopped(ebpfMonOtlp *otlp);

/* The published count of losses begins at 0 again. */
void ebpfMonOtlpResetLost(void *otlp);

/* Prints the state to stdout. "level" 1: with each reason of a loss. */
void ebpfMonOtlpReport(void *otlp, int level);

#endif
