/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends puts to the outside: to files and to log servers. The functions copy what they get into bounded queues and
 * never wait; threads of this room write and send. What could not be written or sent is counted.
 */
#ifndef EBPFMON_EXPORT_H
#define EBPFMON_EXPORT_H

#include "model/ops.h"
#include "model/put.h"

/* The logs of a monitor. */
typedef struct ebpfMonExport ebpfMonExport;

/* Makes the logs. The threads start when there is something to do. Returns NULL if there is no memory. */
ebpfMonExport *ebpfMonExportNew(void);

/* Frees it, only after ebpfMonExportStop, when no other thread uses it any more. If a thread of this room still runs,
 * the data of that thread is not freed. NULL does no harm. */
void ebpfMonExportFree(ebpfMonExport *exporter);

/* The operations that commands and records call. They stay valid until ebpfMonExportFree. */
const ebpfMonLogOps *ebpfMonExportGetOps(const ebpfMonExport *exporter);

/* Queues a put. Does nothing while there is no log. Any thread. */
void ebpfMonExportPut(ebpfMonExport *exporter, const ebpfMonPut *put);

/* Writes and sends what is queued, for "seconds" at most; then closes the files and ends the threads. */
void ebpfMonExportStop(ebpfMonExport *exporter, double seconds);

#endif
