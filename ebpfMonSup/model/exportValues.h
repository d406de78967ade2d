/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the logs, and what is sent to collectors. */
#ifndef EBPFMON_EXPORTVALUES_H
#define EBPFMON_EXPORTVALUES_H

#include <stdint.h>

#define EBPFMON_NO_LOG   "no log: ebpfMonJsonLog and ebpfMonCaPutLog begin one"
#define EBPFMON_NO_OTLP  "nothing is sent: ebpfMonOtlp or OTEL_EXPORTER_OTLP_ENDPOINT begins it"

typedef enum {
    ebpfMonLogNone,
    ebpfMonLogOk,
    ebpfMonLogTrouble /* the message tells what is wrong, and what to do */
} ebpfMonLogState;

typedef struct {
    char     caPutLogLine[1024]; /* the newest line, in the format of caPutLog */
    ebpfMonLogState state;
    char     message[256];
    uint64_t written;        /* lines that were written */
    uint64_t lost;           /* lines and puts that were lost since the last reset */
    double   queue;          /* percent of the queue in use; the maximum of the last second */
} ebpfMonLogValues;

typedef struct {
    ebpfMonLogState state;
    char     message[256];
    uint64_t sent;           /* log records, data points and spans that were accepted */
    uint64_t lost;           /* items that were lost since the last reset */
    double   rate;           /* items sent per second */
    double   queue;          /* percent of the queue in use; the maximum of the last second */
} ebpfMonOtlpValues;

#endif
