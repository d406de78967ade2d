/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, counts and spans to a collector, by OTLP over HTTP in JSON. A thread of its own sends; nobody waits for it, and
 * what could not be sent is counted, by reason.
 */
#ifndef EBPFMON_OTLP_H
#define EBPFMON_OTLP_H

#include "export/otlp/otlpConf.h"
#include "export/otlp/span.h"
#include "model/put.h"

/* Once, before the others. */
void ebpfMonOtlpInit(void);

/* Sends so from now on; a signal without a URL is not sent. 0, or -1 with a message. */
int ebpfMonOtlpConfigure(const ebpfMonOtlpConf *conf);

/* As the environment says, unless a command was given. */
void ebpfMonOtlpStart(void);
/* The commands: model/logOps.h. */
long ebpfMonOtlpCommand(const char *url, const char *signals, const char *headers);
long ebpfMonZipkinCommand(const char *url);

/* Any thread. Does nothing while no endpoint for logs is configured. */
void ebpfMonOtlpPut(const ebpfMonPut *put);

/* Takes nothing more, and sends what is queued, at most "seconds" long; then waits for that. */
void ebpfMonOtlpStopBegin(double seconds);
void ebpfMonOtlpStopWait(void);

void ebpfMonOtlpResetLost(void);
void ebpfMonOtlpReport(int level);

#endif
