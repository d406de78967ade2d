/* SPDX-License-Identifier: BSD-3-Clause */
/* What a command asks of a log: where to, in what format, which puts. Any thread. */
#ifndef EBPFMON_PUTLOGCONF_H
#define EBPFMON_PUTLOGCONF_H

#include <netinet/in.h>

#include "export/log/format.h"
#include "export/log/logFile.h"
#include "model/logOps.h"

#define EBPFMON_PUT_LOGS 8 /* at a time */

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

/* From the arguments of the commands ebpfMonJsonLog and ebpfMonCaPutLog (model/logOps.h). 0, or -1 with a message.
 * The second one may ask a name server for the server's address, which can take long. */
int ebpfMonPutLogConfSetJson(ebpfMonPutLogConf *conf, const char *file, double maxMB, double hours, int keep,
                             ebpfMonLogMode mode);
int ebpfMonPutLogConfSetCaPutLog(ebpfMonPutLogConf *conf, const char *target, int asJson, ebpfMonLogMode mode,
                                 const char *prefix);

/* The command that a configuration came from, for messages. */
const char *ebpfMonPutLogConfGetCommand(const ebpfMonPutLogConf *conf);

/* Nonzero: both lead to the same place in the same format. */
int ebpfMonPutLogConfIsSame(const ebpfMonPutLogConf *a, const ebpfMonPutLogConf *b);

/* The command ebpfMonLogMetadata: sets a key; an empty value removes it. 0, or -1 with a message. */
int ebpfMonFormatLabelsSet(ebpfMonFormatLabels *labels, const char *key, const char *value);

#endif
