/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts to the outside: files, log servers, and by OTLP collectors. ebpfMonExportPut copies the put into a bounded queue
 * and never waits; a thread of this room's own writes. What could not be written is counted, by reason.
 */
#ifndef EBPFMON_EXPORT_H
#define EBPFMON_EXPORT_H

#include "model/put.h"

/* Makes the commands and records of model/logOps.h work. The thread starts with the first log. */
void ebpfMonExportRegister(void);

/* What the environment asks for begins now. */
void ebpfMonExportStart(void);

/* Any thread. Does nothing while no log is configured. */
void ebpfMonExportPut(const ebpfMonPut *put);

/* Writes what is queued (at most "seconds" long) and closes the files. */
void ebpfMonExportStop(double seconds);

#endif
