/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the commands (any thread) and the writer thread, which alone has the sinks. A hanging disk holds the writer
 * and nobody else: commands leave what they want in wanted[], and read counts[].
 */
#ifndef EBPFMON_WRITER_H
#define EBPFMON_WRITER_H

#include <epicsEvent.h>
#include <epicsMutex.h>

#include "export/queue.h"
#include "export/sink.h"

#define EBPFMON_SINKS 8
#define EBPFMON_QUEUE_SIZE (16u << 20)

typedef struct {
    ebpfMonQueue *queue; /* puts, packed; made with the first log */
    epicsMutexId lock; /* of the rest */
    ebpfMonSinkConf wanted[EBPFMON_SINKS];
    ebpfMonFormatMore meta;
    unsigned generation; /* of wanted and meta */
    unsigned rotations;  /* asked for */
    int      stopping;   /* the writer is to end, not later than stopBy (s, monotonic) */
    double   stopBy;
    epicsEventId ended;  /* NULL: no writer */
    /* by the writer */
    ebpfMonSinkCounts counts[EBPFMON_SINKS];
    uint64_t goneLines, goneLost; /* of logs that were switched off */
    /* by whoever resets */
    uint64_t lostBase;
} ebpfMonWriterShare;

extern ebpfMonWriterShare ebpfMonWriter;

/* The thread; triggers "ended". */
void ebpfMonWriterThread(void *unused);

double ebpfMonWriterNow(void);

#endif
