/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of puts, and the thread that writes them. ebpfMonPutLogsAddPut copies a put into a bounded queue and never
 * waits. If a disk hangs, only the thread waits. Any thread may call these functions, except Free. Counts and state go
 * to the published values (model/published.h).
 */
#ifndef EBPFMON_PUTLOGS_H
#define EBPFMON_PUTLOGS_H

#include "export/log/putLogConf.h"

typedef struct ebpfMonPutLogs ebpfMonPutLogs;

/* Makes the logs. The thread starts with the first log. NULL: no memory. */
ebpfMonPutLogs *ebpfMonPutLogsNew(void);

/* Only after ebpfMonPutLogsStop, when no other thread uses it any more. If its thread still runs, nothing is freed. */
void ebpfMonPutLogsFree(ebpfMonPutLogs *logs);

/* Begins a log, changes it, or ends it (mode off). 0; or -1, and a message was logged. */
int ebpfMonPutLogsConfigure(ebpfMonPutLogs *logs, const ebpfMonPutLogConf *conf);

/* Sets a key of caPutLog's JSON metadata for all logs. An empty value removes it. 0; or -1, and a message was
 * logged. */
int ebpfMonPutLogsSetMetadata(ebpfMonPutLogs *logs, const char *key, const char *value);

/* Queues a put. Without a log it returns at once. */
void ebpfMonPutLogsAddPut(ebpfMonPutLogs *logs, const ebpfMonPut *put);

/* Rotates all files. 0; or -1, and a message was logged: no log is a file. */
int ebpfMonPutLogsRotate(ebpfMonPutLogs *logs);

/* The published count of losses begins at 0 again. */
void ebpfMonPutLogsResetLost(ebpfMonPutLogs *logs);

/* Prints the logs to stdout. "level" 1: with the counts of each log. */
void ebpfMonPutLogsReport(ebpfMonPutLogs *logs, int level);

/* Writes what is queued, for "seconds" at most, then ends the thread and all logs. Afterwards logs can be configured
 * again. */
void ebpfMonPutLogsStop(ebpfMonPutLogs *logs, double seconds);

#endif
