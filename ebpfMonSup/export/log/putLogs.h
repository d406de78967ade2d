/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logs of puts, in files and on log servers, and the thread that writes them. ebpfMonPutLogsAddPut copies a put
 * into a bounded queue and never waits. If a disk hangs, only the thread waits. What could not be written or sent is
 * counted. Any thread may call these functions, except Free. Counts and state go to the published values
 * (model/published.h).
 */
#ifndef EBPFMON_PUTLOGS_H
#define EBPFMON_PUTLOGS_H

#include <epicsMutex.h>
#include "common/worker.h"
#include "export/log/putLog.h"
#include "export/shared/recordQueue.h"
#include "model/ops.h"
#include "model/put.h"

/* What commands (any thread) and the log thread share. Only the thread uses the logs. Commands write what they want to
 * wanted[], and read counts[]. */

#define EBPFMON_LOG_CHUNK     (256u << 10) /* bytes of puts that are read from the queue at a time */

/* Only for the log thread. */
typedef struct {
    ebpfMonPutLog log[EBPFMON_PUT_LOGS];
    unsigned generation, rotations; /* those of the commands that were done */
    ebpfMonPutLogConf wanted[EBPFMON_PUT_LOGS]; /* copies, because files are opened without the lock */
    ebpfMonFormatLabels labels;
    uint8_t chunk[EBPFMON_LOG_CHUNK];
    ebpfMonPut put;
    double   publishAt;      /* s, monotonic */
    double   queueFullUntil; /* s, monotonic; until then the state tells that the queue was full */
    uint64_t droppedBefore;  /* puts that the queue had dropped at the last publication */
    int      troubleBefore;  /* nonzero: there was trouble at the last publication */
} ebpfMonLogWriter;

typedef struct ebpfMonPutLogs {
    int active;                /* atomic; nonzero: puts are queued */
    ebpfMonRecordQueue *queue; /* packed puts; made with the first log, before "active" is set, and then kept */
    epicsMutexId lock;         /* protects the members below, except "writer" */
    ebpfMonPutLogConf wanted[EBPFMON_PUT_LOGS];
    ebpfMonFormatLabels labels;
    unsigned generation;       /* changes with "wanted" and "labels" */
    unsigned rotations;        /* number of rotations that were requested */
    int      stopping;         /* nonzero: the thread shall end, not later than stopBy (s, monotonic) */
    double   stopBy;
    ebpfMonWorker *worker;     /* NULL: there is no thread */
    ebpfMonPutLogCounts counts[EBPFMON_PUT_LOGS]; /* written by the thread */
    uint64_t goneLines, goneLost;                 /* written by the thread; of logs that have ended */
    uint64_t lostBase;         /* losses until the last reset */
    ebpfMonLogWriter writer;
} ebpfMonPutLogs;

/* Makes the logs. The thread starts with the first log. NULL: no memory. */
ebpfMonPutLogs *ebpfMonPutLogsNew(void);

/* Only after ebpfMonPutLogsStop, when no other thread uses it any more. If its thread still runs, nothing is freed.
 * NULL does no harm. */
void ebpfMonPutLogsFree(ebpfMonPutLogs *logs);

/* For commands and records. Those that return a status: 0; or -1, and a message was logged. */

/* Writes JSON lines to a file. maxMB, hours: the file is rotated when it has this size or age; 0: never. keep: number
 * of rotated files that stay. */
long ebpfMonPutLogsAddJson(ebpfMonPutLogs *logs, const char *file, double maxMB, double hours, int keep,
                           ebpfMonLogMode mode);
/* Writes lines in the format of caPutLog. target: a file (with a "/" in its name), host[:port], or "PV". prefix: stands
 * before each line; %i is the IOC. */
long ebpfMonPutLogsAddCaPutLog(ebpfMonPutLogs *logs, const char *target, int asJson, ebpfMonLogMode mode,
                               const char *prefix);
/* Sets a pair of caPutLog's JSON metadata. An empty value removes the key. */
long ebpfMonPutLogsSetMetadata(ebpfMonPutLogs *logs, const char *key, const char *value);
long ebpfMonPutLogsRotate(ebpfMonPutLogs *logs); /* all files, now */
void ebpfMonPutLogsResetLost(ebpfMonPutLogs *logs);
void ebpfMonPutLogsReport(ebpfMonPutLogs *logs, int level); /* to stdout */

/* Queues a put. Without a log it returns at once. */
void ebpfMonPutLogsAddPut(ebpfMonPutLogs *logs, const ebpfMonPut *put);

/* Writes what is queued, for "seconds" at most, then ends the thread and all logs. Afterwards logs can be configured
 * again. */
void ebpfMonPutLogsStop(ebpfMonPutLogs *logs, double seconds);

#endif
