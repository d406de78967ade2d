/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and spans to the outside: files, log servers, and by OTLP collectors. What is given here is copied into bounded
 * queues; nobody waits. Threads of this room write and send. What could not be written or sent is counted, by reason.
 */
#ifndef EBPFMON_EXPORT_H
#define EBPFMON_EXPORT_H

#include "export/otlp/span.h"
#include "model/put.h"

/* Makes the commands and records of model/logOps.h work. Once, before the others; the threads start when there is
 * something to do. */
void ebpfMonExportRegister(void);

/* Begins what the environment (OTEL_…) asks for. */
void ebpfMonExportStart(void);

/* Any thread. Does nothing while neither a log nor an endpoint for puts is configured. */
void ebpfMonExportPut(const ebpfMonPut *put);

/* Nonzero while an endpoint for spans is configured: else spans need not be made. Any thread; takes no lock. */
int ebpfMonExportWantsSpans(void);

/* Any thread. Does nothing while no endpoint for spans is configured. */
void ebpfMonExportSpan(const ebpfMonSpan *span);

/* Writes and sends what is queued (at most "seconds" long), closes the files, ends the threads. */
void ebpfMonExportStop(double seconds);

#endif
