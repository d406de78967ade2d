/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of puts, and the thread that writes them: ebpfMonPutLogsAddPut copies a put into a bounded queue and never
 * waits. A disk that hangs holds the thread up and nobody else. Any thread may call these functions, Free excepted.
 * Counts and state go to what is published (model/published.h).
 */
#ifndef EBPFMON_PUTLOGS_H
#define EBPFMON_PUTLOGS_H

#include "export/log/putLogConf.h"

typedef struct ebpfMonPutLogs ebpfMonPutLogs;

/* NULL without memory. The thread starts with the first log. */
ebpfMonPutLogs *ebpfMonPutLogsNew(void);

/* After ebpfMonPutLogsStop, when no other thread uses it any more. If its thread has not ended yet, nothing is
 * freed. */
void ebpfMonPutLogsFree(ebpfMonPutLogs *logs);

/* Begins a log, changes it, or ends it (mode off). 0, or -1 with a message. */
int ebpfMonPutLogsConfigure(ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf);

/* A key of caPutLog's JSON for all logs; an empty value removes it. 0, or -1 with a message. */
int ebpfMonPutLogsSetMetadata(ebpfMonPutLogs *logs, const char *key, const char *value);

/* Does nothing, and costs next to nothing, while there is no log. */
void ebpfMonPutLogsAddPut(ebpfMonPutLogs *logs, const ebpfMonPut *put);

/* Begins all files anew. 0, or -1 with a message: no log is a file. */
int ebpfMonPutLogsRotate(ebpfMonPutLogs *logs);

/* The published loss counts from 0 again. */
void ebpfMonPutLogsResetLost(ebpfMonPutLogs *logs);

/* Prints to stdout. level 1: with counts of each log. */
void ebpfMonPutLogsReport(ebpfMonPutLogs *logs, int level);

/* Writes what is queued, at most "seconds" long, then ends the thread and all logs. Logs can be configured again. */
void ebpfMonPutLogsStop(ebpfMonPutLogs *logs, double seconds);

#endif
