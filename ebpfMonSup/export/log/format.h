/* SPDX-License-Identifier: BSD-3-Clause */
/* A put as a line of a log; documentation/putLog.md says what stands in each. One thread uses a formatter. */
#ifndef EBPFMON_FORMAT_H
#define EBPFMON_FORMAT_H

#include <stddef.h>

#include "export/log/burst.h"
#include "export/shared/jsonGen.h"
#include "model/put.h"

#define EBPFMON_LINE_MAX 32768 /* JSON line: every text of a put with each byte escaped fits */
/* iocLogServer breaks a line that is longer (iocLogServer.c: recvbuf), so caPutLog's lines are kept shorter. */
#define EBPFMON_CAPUTLINE_MAX 1000

#define EBPFMON_META_MAX 8

typedef enum {
    ebpfMonFormatJson,
    ebpfMonFormatCaPutText,
    ebpfMonFormatCaPutJson
} ebpfMonFormat;

/* What the site adds to caPutLog's lines. */
typedef struct {
    char prefix[64];     /* before each line; %i: the IOC */
    unsigned metas;
    struct {
        char key[40], value[100];
    } meta[EBPFMON_META_MAX];
} ebpfMonFormatLabels;

/* Set to 0 before the first use. It must not move afterwards (jsonGen.h). */
typedef struct {
    ebpfMonFormatLabels labels;
    ebpfMonJson json;
    char     host[64];   /* the name of this host; empty: not asked for yet */
    ebpfMonPut loss;     /* the put that stands for lost lines; here because it is large for a stack */
} ebpfMonFormatter;

/* Gives back what it holds; after that it is as new, but for its labels. */
void ebpfMonFormatterFree(ebpfMonFormatter *formatter);

/* A line. burst may be NULL. Returns the length without a line feed, no terminator; 0: it did not fit. */
size_t ebpfMonFormatPut(ebpfMonFormatter *formatter, ebpfMonFormat format, const ebpfMonPut *put,
                        const ebpfMonBurstInfo *burst, char *buf, size_t size);

/* The line that stands for "lost" lines. In caPutLog's formats it is a put to LOG_LOST_CNT. */
size_t ebpfMonFormatLoss(ebpfMonFormatter *formatter, ebpfMonFormat format, uint64_t lost, const char *why, char *buf,
                         size_t size);

/* The formats; the two above choose among them. "limit": characters of a value. */
size_t ebpfMonFormatJsonLine(ebpfMonFormatter *formatter, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                             char *buf, size_t size);
size_t ebpfMonFormatJsonLossLine(ebpfMonFormatter *formatter, uint64_t lost, const char *why, char *buf, size_t size);
size_t ebpfMonFormatCaPutTextLine(ebpfMonFormatter *formatter, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                                  size_t limit, char *buf, size_t size);
size_t ebpfMonFormatCaPutJsonLine(ebpfMonFormatter *formatter, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                                  size_t limit, char *buf, size_t size);

#endif
