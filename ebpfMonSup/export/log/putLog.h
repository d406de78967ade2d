/* SPDX-License-Identifier: BSD-3-Clause */
/* One log: where to, in what format, which puts. Only the writer thread. */
#ifndef EBPFMON_PUTLOG_H
#define EBPFMON_PUTLOG_H

#include <netinet/in.h>

#include "export/log/burst.h"
#include "export/log/format.h"
#include "export/log/logFile.h"
#include "export/log/logServer.h"
#include "model/logOps.h"

typedef enum {
    ebpfMonPutLogNone,
    ebpfMonPutLogFile,
    ebpfMonPutLogServer,
    ebpfMonPutLogPv
} ebpfMonPutLogKind;

/* What was asked for. */
typedef struct {
    ebpfMonPutLogKind kind;
    ebpfMonFormat   format;
    ebpfMonLogMode  mode;
    char     target[256];
    char     prefix[64];
    ebpfMonLogFileLimits limits;
    struct sockaddr_in addr;
} ebpfMonPutLogConf;

/* Puts that came: every one is in a line of its own, or joined with others, or skipped, or lost. */
typedef struct {
    uint64_t lines, lost;  /* lines */
    uint64_t joined;       /* puts without a line of their own: a summary names them */
    uint64_t summaries;    /* lines that are no single put: of bursts, and of losses */
    uint64_t skipped;      /* puts that changed nothing, in mode changes */
    int      trouble;
    char     why[256];
} ebpfMonPutLogCounts;

typedef struct {
    ebpfMonPutLogConf conf;
    ebpfMonLogFile *file;
    ebpfMonLogServer *server;
    ebpfMonBurst *burst;
    ebpfMonPutLogCounts counts;
    ebpfMonFormatMore more;
    char     last[EBPFMON_CAPUTLINE_MAX + 24]; /* ebpfMonPutLogPv: the newest line */
    int      changed;      /* it is newer than when the reader set this to 0 */
    double   now;
} ebpfMonPutLog;

/* Nonzero when both lead to the same place in the same way. */
int ebpfMonPutLogIsSame(const ebpfMonPutLogConf *a, const ebpfMonPutLogConf *b);

/* From none to something, or another mode, other limits. */
void ebpfMonPutLogConfigure(ebpfMonPutLog *s, const ebpfMonPutLogConf *conf, double now);

void ebpfMonPutLogAddPut(ebpfMonPutLog *s, const ebpfMonPut *put, double now);
void ebpfMonPutLogTick(ebpfMonPutLog *s, double now);
void ebpfMonPutLogRotate(ebpfMonPutLog *s, double now);

/* Ends the bursts; they are lines to be written then. */
void ebpfMonPutLogEndBursts(ebpfMonPutLog *s, double now);
int ebpfMonPutLogIsPending(const ebpfMonPutLog *s);

/* Writes what can be written, and makes it none. The counts stay. */
void ebpfMonPutLogClose(ebpfMonPutLog *s, double now);

/* The counts as they are now. */
const ebpfMonPutLogCounts *ebpfMonPutLogGetCounts(ebpfMonPutLog *s);

#endif
