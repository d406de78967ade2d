/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What commands (putLogs.c, any thread) and the log thread (logThread.c) share. Only the thread uses the logs. Commands
 * write what they want to wanted[], and read counts[].
 */
#ifndef EBPFMON_LOGTHREAD_H
#define EBPFMON_LOGTHREAD_H

#include <epicsMutex.h>

#include "common/worker.h"
#include "export/log/putLog.h"
#include "export/shared/recordQueue.h"

#define EBPFMON_PUT_LOG_QUEUE (16u << 20) /* bytes of the queue */
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

/* The function of the thread. "arg": the ebpfMonPutLogs. */
void ebpfMonLogThreadRun(ebpfMonWorker *worker, void *arg);

#endif
