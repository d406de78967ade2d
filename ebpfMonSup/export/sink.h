/* SPDX-License-Identifier: BSD-3-Clause */
/* One log: where to, in what format, which puts. Only the writer thread. */
#ifndef EBPFMON_SINK_H
#define EBPFMON_SINK_H

#include <netinet/in.h>

#include "export/burst.h"
#include "export/format.h"
#include "export/logFile.h"
#include "export/logServer.h"
#include "model/logControl.h"

typedef enum {
    ebpfMonSinkNone,
    ebpfMonSinkFile,
    ebpfMonSinkServer,
    ebpfMonSinkPv
} ebpfMonSinkKind;

/* What was asked for. */
typedef struct {
    ebpfMonSinkKind kind;
    ebpfMonFormat   format;
    ebpfMonLogMode  mode;
    char     target[256];
    char     prefix[64];
    ebpfMonLogFileLimits limits;
    struct sockaddr_in addr;
} ebpfMonSinkConf;

/* Puts that came: every one is in a line of its own, or joined with others, or skipped, or lost. */
typedef struct {
    uint64_t lines, lost;  /* lines */
    uint64_t joined;       /* puts without a line of their own: a summary names them */
    uint64_t summaries;    /* lines that are no single put: of bursts, and of losses */
    uint64_t skipped;      /* puts that changed nothing, in mode changes */
    int      trouble;
    char     why[256];
} ebpfMonSinkCounts;

typedef struct {
    ebpfMonSinkConf conf;
    ebpfMonLogFile *file;
    ebpfMonLogServer *server;
    ebpfMonBurst *burst;
    ebpfMonSinkCounts counts;
    ebpfMonFormatMore more;
    char     last[EBPFMON_CAPUTLINE_MAX + 24]; /* ebpfMonSinkPv: the newest line */
    int      changed;      /* it is newer than when the reader set this to 0 */
    double   now;
} ebpfMonSink;

/* Nonzero when both lead to the same place in the same way. */
int ebpfMonSinkSame(const ebpfMonSinkConf *a, const ebpfMonSinkConf *b);

/* From none to something, or another mode, other limits. */
void ebpfMonSinkConfigure(ebpfMonSink *s, const ebpfMonSinkConf *conf, double now);

void ebpfMonSinkPut(ebpfMonSink *s, const ebpfMonPut *put, double now);
void ebpfMonSinkTick(ebpfMonSink *s, double now);
void ebpfMonSinkRotate(ebpfMonSink *s, double now);

/* Ends the bursts; they are lines to be written then. */
void ebpfMonSinkEnd(ebpfMonSink *s, double now);
int ebpfMonSinkPending(const ebpfMonSink *s);

/* Writes what can be written, and makes it none. The counts stay. */
void ebpfMonSinkClose(ebpfMonSink *s, double now);

/* The counts as they are now. */
const ebpfMonSinkCounts *ebpfMonSinkCount(ebpfMonSink *s);

#endif
