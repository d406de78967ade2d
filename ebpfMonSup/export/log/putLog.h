/* SPDX-License-Identifier: BSD-3-Clause */
/* One log: a file, a log server or a PV, with its format and its burst filter. One thread uses it; times in seconds,
 * monotonic. */
#ifndef EBPFMON_PUTLOG_H
#define EBPFMON_PUTLOG_H

#include "export/log/burst.h"
#include "export/log/format.h"
#include "export/log/logFile.h"
#include "export/log/logServer.h"
#include "export/log/putLogConf.h"

/* What became of the puts: each is in a line of its own, or in a summary, or skipped, or lost. */
typedef struct {
    uint64_t lines, lost;  /* lines */
    uint64_t joined;       /* puts without a line of their own: a summary counts them */
    uint64_t summaries;    /* lines that are no single put: of bursts, and of losses */
    uint64_t skipped;      /* puts that changed nothing, in mode changes */
    int      trouble;
    char     why[256];
} ebpfMonPutLogCounts;

/* Set to 0 before the first use. It must not move afterwards. */
typedef struct {
    ebpfMonPutLogConf conf;
    ebpfMonLogFile *file;
    ebpfMonLogServer *server;
    ebpfMonBurst *burst;
    ebpfMonPutLogCounts counts;
    ebpfMonFormatter formatter;
    char     last[EBPFMON_CAPUTLINE_MAX + 24]; /* ebpfMonPutLogPv: the newest line */
    int      changed;      /* "last" is newer than when the reader set this to 0 */
    double   now;          /* of the call that is under way: the burst filter calls back without it */
    char     line[EBPFMON_LINE_MAX]; /* that is being made */
} ebpfMonPutLog;

/* Begins the log, or gives it another mode, other limits, other labels. */
void ebpfMonPutLogConfigure(ebpfMonPutLog *log, const ebpfMonPutLogConf *conf, const ebpfMonFormatLabels *labels,
                            double now);

void ebpfMonPutLogAddPut(ebpfMonPutLog *log, const ebpfMonPut *put, double now);

/* To be called often: writes what waits, tries again, ends bursts that are over. */
void ebpfMonPutLogTick(ebpfMonPutLog *log, double now);

/* Begins a new file. Does nothing with a server or PV. */
void ebpfMonPutLogRotate(ebpfMonPutLog *log, double now);

/* Ends the bursts, and with them the burst filter: then their summaries are lines to be written. */
void ebpfMonPutLogEndBursts(ebpfMonPutLog *log, double now);

/* Nonzero while lines wait for a server. */
int ebpfMonPutLogIsPending(const ebpfMonPutLog *log);

/* Writes what can be written without waiting, counts the rest as lost, and closes. The counts stay. */
void ebpfMonPutLogClose(ebpfMonPutLog *log, double now);

/* The counts as they are now. */
const ebpfMonPutLogCounts *ebpfMonPutLogGetCounts(ebpfMonPutLog *log);

/* Nonzero: the put changed nothing. It was done, and the value sent is the one there was. */
int ebpfMonPutLogIsUnchanged(const ebpfMonPut *put);

#endif
