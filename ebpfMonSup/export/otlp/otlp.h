/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, counts and spans to a collector, by OTLP over HTTP in JSON, and spans to Zipkin. A thread sends; nobody waits
 * for it. What could not be sent is counted, by reason. Any thread may call these functions, Free excepted. Counts and
 * state go to what is published (model/published.h).
 */
#ifndef EBPFMON_OTLP_H
#define EBPFMON_OTLP_H

#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "model/put.h"

typedef struct ebpfMonOtlp ebpfMonOtlp;

/* NULL without memory. The thread starts when there is something to send. */
ebpfMonOtlp *ebpfMonOtlpNew(void);

/* After ebpfMonOtlpWaitStopped, when no other thread uses it any more. If the thread has not ended yet, nothing is
 * freed. */
void ebpfMonOtlpFree(ebpfMonOtlp *otlp);

/* Sends so from now on; a signal without a URL is not sent. 0, or -1 with a message. */
int ebpfMonOtlpConfigure(ebpfMonOtlp *otlp, const ebpfMonOtlpConf *conf);

/* Configures the signals for which no command was given, as the environment says. */
void ebpfMonOtlpReadEnvironment(ebpfMonOtlp *otlp);

/* The commands (model/logOps.h). 0, or -1 with a message. */
int ebpfMonOtlpSetCommand(ebpfMonOtlp *otlp, const char *url, const char *signals, const char *headers);
int ebpfMonOtlpSetZipkin(ebpfMonOtlp *otlp, const char *url);

/* Copies, and never waits. Does nothing while no endpoint for logs is configured. */
void ebpfMonOtlpAddPut(ebpfMonOtlp *otlp, const ebpfMonPut *put);

/* Nonzero while an endpoint for spans is configured. Takes no lock. */
int ebpfMonOtlpWantsSpans(ebpfMonOtlp *otlp);

/* Copies, and never waits. Does nothing while no endpoint for spans is configured. */
void ebpfMonOtlpAddSpan(ebpfMonOtlp *otlp, const ebpfMonSpan *span);

/* Takes nothing more, and sends what is queued, at most "seconds" long. Returns at once. */
void ebpfMonOtlpStop(ebpfMonOtlp *otlp, double seconds);

/* Waits for the end that was asked for by ebpfMonOtlpStop. After that it can be configured again. */
void ebpfMonOtlpWaitStopped(ebpfMonOtlp *otlp);

/* The published loss counts from 0 again. */
void ebpfMonOtlpResetLost(ebpfMonOtlp *otlp);

/* Prints to stdout. level 1: with each reason of a loss. */
void ebpfMonOtlpReport(ebpfMonOtlp *otlp, int level);

#endif
