/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a put as a line of a log; documentation/use/putLog.md tells what is in it. One thread uses a formatter. */
#ifndef EBPFMON_FORMAT_H
#define EBPFMON_FORMAT_H

#include <stddef.h>
#include "export/log/burst.h"
#include "export/shared/jsonGen.h"
#include "model/put.h"

#define EBPFMON_LINE_MAX 32768 /* bytes of a JSON line: has room for every text of a put with each byte escaped */
/* Bytes of a caPutLog line. iocLogServer breaks a longer line (iocLogServer.c: recvbuf). */
#define EBPFMON_CAPUTLINE_MAX 1000

#define EBPFMON_META_MAX 8

typedef enum {
    ebpfMonFormatJson,
    ebpfMonFormatCaPutText,
    ebpfMonFormatCaPutJson
} ebpfMonFormat;

/* What a site adds to the lines of caPutLog. */
typedef struct {
    char prefix[64];     /* stands before each line; %i is the IOC */
    unsigned metas;
    struct {
        char key[40], value[100];
    } meta[EBPFMON_META_MAX];
} ebpfMonFormatLabels;

/* Set it to 0 before the first use. It must not move afterwards (jsonGen.h). */
typedef struct {
    ebpfMonFormatLabels labels;
    ebpfMonJson json;
    char     host[64];   /* name of this host; empty: not read yet */
    ebpfMonPut loss;     /* the put that reports lost lines; it is a member because it is too large for a stack */
} ebpfMonFormatter;

/* Frees what it holds. Afterwards it is as new, except for its labels. */
void ebpfMonFormatterFree(ebpfMonFormatter *formatter);

/* Writes a line. "burst" may be NULL. Returns the length, without a line feed and without a terminator; 0: it did not
 * fit. */
size_t ebpfMonFormatPut(ebpfMonFormatter *formatter, ebpfMonFormat format, const ebpfMonPut *put,
                        const ebpfMonBurstInfo *burst, char *buf, size_t size);

/* Writes the line that reports "lost" lines. In the formats of caPutLog it is a put to LOG_LOST_CNT. */
size_t ebpfMonFormatLoss(ebpfMonFormatter *formatter, ebpfMonFormat format, uint64_t lost, const char *why, char *buf,
                         size_t size);

#endif
