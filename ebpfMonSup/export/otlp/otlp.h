/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends puts, counts and spans to a collector, by OTLP over HTTP in JSON; and spans to Zipkin. A thread sends, and
 * nobody waits for it. What could not be sent is counted, by reason. Any thread may call these functions, except Free.
 * Counts and state go to the published values (model/published.h).
 */
#ifndef EBPFMON_OTLP_H
#define EBPFMON_OTLP_H

#include <epicsMutex.h>
#include "common/worker.h"
#include "export/otlp/otlpConf.h"
#include "export/otlp/otlpMetrics.h"
#include "export/otlp/otlpSender.h"
#include "export/otlp/span.h"
#include "export/shared/recordQueue.h"
#include "model/published.h"
#include "model/put.h"

typedef struct ebpfMonOtlp ebpfMonOtlp;

/* Makes OTLP. The thread starts when there is something to send. Returns NULL if there is no memory. */
ebpfMonOtlp *ebpfMonOtlpNew(void);

/* Only after ebpfMonOtlpWaitStopped, when no other thread uses it any more. If its thread still runs, nothing is
 * freed. */
void ebpfMonOtlpFree(ebpfMonOtlp *otlp);

/* Sets the configuration from now on; a signal without a URL is not sent. 0; or -1, and a message was logged. */
int ebpfMonOtlpConfigure(ebpfMonOtlp *otlp, const ebpfMonOtlpConf *conf);

/* Configures the signals from the environment, except those that a command has set. */
void ebpfMonOtlpReadEnvironment(ebpfMonOtlp *otlp);

/* The commands (model/ops.h). 0; or -1, and a message was logged. */
int ebpfMonOtlpSetCommand(ebpfMonOtlp *otlp, const char *url, const char *signals, const char *headers);
int ebpfMonOtlpSetZipkin(ebpfMonOtlp *otlp, const char *url);

/* Queues a copy of the put, and never waits. Does nothing without an endpoint for logs. */
void ebpfMonOtlpAddPut(ebpfMonOtlp *otlp, const ebpfMonPut *put);

/* Nonzero: there is an endpoint for spans. Takes no lock. */
int ebpfMonOtlpWantsSpans(ebpfMonOtlp *otlp);

/* Queues a copy of the span, and never waits. Does nothing without an endpoint for spans. */
void ebpfMonOtlpAddSpan(ebpfMonOtlp *otlp, const ebpfMonSpan *span);

/* Nonzero: so many spans will not be dropped for want of room, if nobody adds many others meanwhile. */
int ebpfMonOtlpHasRoom(ebpfMonOtlp *otlp, unsigned spans);

/* Begins the end: the queues take nothing more, and what they have is sent, for "seconds" at most. Returns at once. */
void ebpfMonOtlpStop(ebpfMonOtlp *otlp, double seconds);

/* Waits for the end that ebpfMonOtlpStop began. Afterwards it can be configured again. */
void ebpfMonOtlpWaitStopped(ebpfMonOtlp *otlp);

/* The published count of losses begins at 0 again. */
void ebpfMonOtlpResetLost(ebpfMonOtlp *otlp);

/* Prints the state to stdout. "level" 1: with each reason of a loss. */
void ebpfMonOtlpReport(ebpfMonOtlp *otlp, int level);

#endif
