/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and spans to the outside: files, log servers, and by OTLP collectors. What is given here is copied into bounded
 * queues; nobody waits. Threads of this room write and send. What could not be written or sent is counted, by reason.
 */
#ifndef EBPFMON_EXPORT_H
#define EBPFMON_EXPORT_H

#include "export/otlp/span.h"
#include "model/logOps.h"
#include "model/put.h"

typedef struct ebpfMonExport ebpfMonExport;

/* NULL without memory. Threads start when there is something to do. */
ebpfMonExport *ebpfMonExportNew(void);

/* After ebpfMonExportStop, when no other thread uses it any more. NULL does no harm. What a thread still uses that did not
 * end is not freed. */
void ebpfMonExportFree(ebpfMonExport *exporter);

/* What commands and records may ask of it; good as long as it is. */
const ebpfMonLogOps *ebpfMonExportGetOps(const ebpfMonExport *exporter);

/* Begins what the environment (OTEL_…) asks for. */
void ebpfMonExportStart(ebpfMonExport *exporter);

/* Any thread. Does nothing while neither a log nor an endpoint for puts is configured. */
void ebpfMonExportPut(ebpfMonExport *exporter, const ebpfMonPut *put);

/* These two are a sink of spans. Any thread.
 * WantsSpans: nonzero while an endpoint for spans is configured: else spans need not be made. It takes no lock.
 * Span: does nothing while no endpoint for spans is configured. */
int ebpfMonExportWantsSpans(void *exporter);
void ebpfMonExportSpan(void *exporter, const ebpfMonSpan *span);

/* Writes and sends what is queued (at most "seconds" long), closes the files, ends the threads. */
void ebpfMonExportStop(ebpfMonExport *exporter, double seconds);

#endif
