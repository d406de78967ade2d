/* SPDX-License-Identifier: BSD-3-Clause */
/* One log: a file, a log server or a PV, with its format and its burst filter. One thread uses it; times are monotonic
 * seconds. */
#ifndef EBPFMON_PUTLOG_H
#define EBPFMON_PUTLOG_H

#include <netinet/in.h>

#include "export/log/burst.h"
#include "export/log/format.h"
#include "export/log/logFile.h"
#include "export/log/logServer.h"
#include "model/ops.h"

/* --- settings ---
 *
 * The configuration of a log, from a command: its target, its format, and which puts. Any thread. */

#define EBPFMON_PUT_LOGS 8 /* logs at the same time */

typedef enum {
    ebpfMonPutLogNone,
    ebpfMonPutLogFile,
    ebpfMonPutLogServer,
    ebpfMonPutLogPv
} ebpfMonPutLogKind;

typedef struct {
    ebpfMonPutLogKind kind;
    ebpfMonFormat   format;
    ebpfMonLogMode  mode;   /* without ebpfMonLogPeople: */
    int             people;
    char     target[256];
    char     prefix[64];
    ebpfMonLogFileLimits limits;
    struct sockaddr_in addr;
} ebpfMonPutLogConf;

/* Make a configuration from the arguments of ebpfMonJsonLog and ebpfMonCaPutLog (model/ops.h). 0; or -1, and a
 * message was logged. The second function may ask a name server, which can take long. */
int ebpfMonPutLogConfSetJson(ebpfMonPutLogConf *conf, const char *file, double maxMB, double hours, int keep,
                             ebpfMonLogMode mode);
int ebpfMonPutLogConfSetCaPutLog(ebpfMonPutLogConf *conf, const char *target, int asJson, ebpfMonLogMode mode,
                                 const char *prefix);

/* Returns the command of a configuration, for messages. */
const char *ebpfMonPutLogConfGetCommand(const ebpfMonPutLogConf *conf);

/* Nonzero: both have the same target and the same format. */
int ebpfMonPutLogConfIsSame(const ebpfMonPutLogConf *a, const ebpfMonPutLogConf *b);

/* The command ebpfMonLogMetadata: sets the value of a key. An empty value removes it. 0; or -1, and a message was
 * logged. */
int ebpfMonFormatLabelsSet(ebpfMonFormatLabels *labels, const char *key, const char *value);

/* What happened to the puts: each of them is in a line of its own, in a summary, skipped, or lost. */
typedef struct {
    uint64_t lines, lost;  /* lines that were written, lines that were lost */
    uint64_t joined;       /* puts without a line of their own; a summary counts them */
    uint64_t summaries;    /* lines that are no single put: of bursts and of losses */
    uint64_t skipped;      /* puts that changed nothing, in the mode "changes"; automatic ones, with "people" */
    int      trouble;
    char     why[256];
} ebpfMonPutLogCounts;

/* Set it to 0 before the first use. It must not move afterwards. */
typedef struct {
    ebpfMonPutLogConf conf;
    ebpfMonLogFile *file;
    ebpfMonLogServer *server;
    ebpfMonBurst *burst;
    ebpfMonPutLogCounts counts;
    ebpfMonFormatter formatter;
    char     last[EBPFMON_CAPUTLINE_MAX + 24]; /* the newest line, of an ebpfMonPutLogPv */
    uint64_t shownAt;      /* when the newest put in "last" was made (monotonic ns) */
    int      changed;      /* nonzero: "last" has changed since the reader set this to 0 */
    uint64_t missed;       /* puts that were lost before they came here, and that no line reports yet; the log thread
                            * adds them. They are not in "counts" */
    double   now;          /* "now" of the present call, because the burst filter calls back without it */
    char     line[EBPFMON_LINE_MAX]; /* the line that is being written */
} ebpfMonPutLog;

/* Begins the log; or sets a new mode, limits, or labels. */
void ebpfMonPutLogConfigure(ebpfMonPutLog *log, const ebpfMonPutLogConf *conf, const ebpfMonFormatLabels *labels,
                            double now);

/* Adds a put, as the mode of the log tells. */
void ebpfMonPutLogAddPut(ebpfMonPutLog *log, const ebpfMonPut *put, double now);

/* Call it often: writes what waits, tries again after trouble, and ends idle bursts. */
void ebpfMonPutLogTick(ebpfMonPutLog *log, double now);

/* Rotates a file. Does nothing with a server or PV. */
void ebpfMonPutLogRotate(ebpfMonPutLog *log, double now);

/* Ends the bursts and the burst filter; the summaries become lines. */
void ebpfMonPutLogEndBursts(ebpfMonPutLog *log, double now);

/* Nonzero: lines wait for a server. */
int ebpfMonPutLogIsPending(const ebpfMonPutLog *log);

/* Writes what can be written without waiting, counts the rest as lost, and closes the log. "hasWaited": as for
 * ebpfMonLogServerClose. The counts stay. */
void ebpfMonPutLogClose(ebpfMonPutLog *log, double now, int hasWaited);

/* The counts at present. */
const ebpfMonPutLogCounts *ebpfMonPutLogGetCounts(ebpfMonPutLog *log);

/* Nonzero: the put was done and changed nothing: the new value is the old one. */
int ebpfMonPutLogIsUnchanged(const ebpfMonPut *put);

#endif
