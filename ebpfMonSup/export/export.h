/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends puts and spans to the outside: to files, to log servers, and by OTLP to collectors. The functions copy what
 * they get into bounded queues and never wait; threads of this room write and send. What could not be written or sent
 * is counted, by reason.
 */
#ifndef EBPFMON_EXPORT_H
#define EBPFMON_EXPORT_H

#include "export/otlp/span.h"
#include "model/ops.h"
#include "model/put.h"

/* The logs and OTLP of a monitor. */
typedef struct ebpfMonExport ebpfMonExport;

/* Makes the logs and OTLP. The threads start when there is something to do. Returns NULL if there is no memory. */
ebpfMonExport *ebpfMonExportNew(void);

/* Frees it, only after ebpfMonExportStop, when no other thread uses it any more. If a thread of this room still runs,
 * the data of that thread is not freed. NULL does no harm. */
void ebpfMonExportFree(ebpfMonExport *exporter);

/* The operations that commands and records call. They stay valid until ebpfMonExportFree. */
const ebpfMonLogOps *ebpfMonExportGetOps(const ebpfMonExport *exporter);

/* Begins to send, if the environment (OTEL_…) asks for it. */
void ebpfMonExportStart(ebpfMonExport *exporter);

/* Queues a put. Does nothing while there is neither a log nor an endpoint for puts. Any thread. */
void ebpfMonExportPut(ebpfMonExport *exporter, const ebpfMonPut *put);

/* The next two functions receive spans; "exporter" is the ebpfMonExport. Any thread. */

/* Nonzero while there is an endpoint for spans; otherwise spans need not be made. Takes no lock. */
int ebpfMonExportWantsSpans(void *exporter);

/* Queues a span. Does nothing while there is no endpoint for spans. */
void ebpfMonExportSpan(void *exporter, const ebpfMonSpan *span);

/* Nonzero: there is room for so many spans: see ebpfMonOtlpHasRoom. */
int ebpfMonExportHasRoomForSpans(void *exporter, unsigned spans);

/* Writes and sends what is queued, for "seconds" at most; then closes the files and ends the threads. */
void ebpfMonExportStop(ebpfMonExport *exporter, double seconds);

#endif
