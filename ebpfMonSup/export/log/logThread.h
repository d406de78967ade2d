/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What commands (putLogs.c, any thread) and the log thread (logThread.c) share. The thread alone has the logs; commands
 * leave what they want in wanted[], and read counts[].
 */
#ifndef EBPFMON_LOGTHREAD_H
#define EBPFMON_LOGTHREAD_H

#include <epicsMutex.h>

#include "common/worker.h"
#include "export/log/putLog.h"
#include "export/shared/recordQueue.h"

#define EBPFMON_PUT_LOG_QUEUE (16u << 20) /* bytes */
#define EBPFMON_LOG_CHUNK     (256u << 10) /* bytes of puts that are read from the queue at a time */

/* The log thread's own. */
typedef struct {
    ebpfMonPutLog log[EBPFMON_PUT_LOGS];
    unsigned generation, rotations; /* of what was wanted: these are done */
    ebpfMonPutLogConf wanted[EBPFMON_PUT_LOGS]; /* copies: files are opened without the lock */
    ebpfMonFormatLabels labels;
    uint8_t chunk[EBPFMON_LOG_CHUNK];
    ebpfMonPut put;
    double   publishAt;      /* s, monotonic */
    double   queueFullUntil; /* s, monotonic: so long the state says that the queue was full */
    uint64_t droppedBefore;  /* by the queue, as published last */
    int      troubleBefore;  /* as published last */
} ebpfMonLogWriter;

typedef struct ebpfMonPutLogs {
    int active;                /* atomic: puts are queued */
    ebpfMonRecordQueue *queue; /* puts, packed; made with the first log, before "active" is set, and then kept */
    epicsMutexId lock;         /* of what follows, but "writer" */
    ebpfMonPutLogConf wanted[EBPFMON_PUT_LOGS];
    ebpfMonFormatLabels labels;
    unsigned generation;       /* of wanted and labels */
    unsigned rotations;        /* asked for */
    int      stopping;         /* the thread is to end, not later than stopBy (s, monotonic) */
    double   stopBy;
    ebpfMonWorker *worker;     /* NULL: there is no thread */
    ebpfMonPutLogCounts counts[EBPFMON_PUT_LOGS]; /* written by the thread */
    uint64_t goneLines, goneLost;                 /* written by the thread: of logs that have ended */
    uint64_t lostBase;         /* losses up to the last reset */
    ebpfMonLogWriter writer;
} ebpfMonPutLogs;

/* The thread. arg: the ebpfMonPutLogs. */
void ebpfMonLogThreadRun(ebpfMonWorker *worker, void *arg);

#endif
