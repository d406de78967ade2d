/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of a log, from a command: its target, its format, and which puts. Any thread. */
#ifndef EBPFMON_PUTLOGCONF_H
#define EBPFMON_PUTLOGCONF_H

#include <netinet/in.h>

#include "export/log/format.h"
#include "export/log/logFile.h"
#include "model/ops.h"

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
    ebpfMonLogMode  mode;
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

#endif
