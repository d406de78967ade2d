/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the commands (any thread) and the writer thread, which alone has the sinks. A hanging disk holds the writer
 * and nobody else: commands leave what they want in wanted[], and read counts[].
 */
#ifndef EBPFMON_LOGTHREAD_H
#define EBPFMON_LOGTHREAD_H

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/recordQueue.h"
#include "export/log/putLog.h"

#define EBPFMON_PUT_LOGS 8
#define EBPFMON_QUEUE_SIZE (16u << 20)

typedef struct {
    ebpfMonRecordQueue *queue; /* puts, packed; made with the first log */
    epicsMutexId lock; /* of the rest */
    ebpfMonPutLogConf wanted[EBPFMON_PUT_LOGS];
    ebpfMonFormatMore meta;
    unsigned generation; /* of wanted and meta */
    unsigned rotations;  /* asked for */
    int      stopping;   /* the writer is to end, not later than stopBy (s, monotonic) */
    double   stopBy;
    epicsEventId ended;  /* NULL: no writer */
    /* by the writer */
    ebpfMonPutLogCounts counts[EBPFMON_PUT_LOGS];
    uint64_t goneLines, goneLost; /* of logs that were switched off */
    /* by whoever resets */
    uint64_t lostBase;
} ebpfMonLogThreadShare;

extern ebpfMonLogThreadShare ebpfMonLogThread;

/* The thread; triggers "ended". */
void ebpfMonLogThreadRun(void *unused);

double ebpfMonLogThreadNow(void);

#endif
