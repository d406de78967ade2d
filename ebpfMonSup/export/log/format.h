/* SPDX-License-Identifier: BSD-3-Clause */
/* A put as a line of a log; documentation/putLog.md says what stands in each. Only the writer thread. */
#ifndef EBPFMON_FORMAT_H
#define EBPFMON_FORMAT_H

#include <stddef.h>

#include "export/log/burst.h"
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

typedef struct {
    char prefix[64];     /* before each line of caPutLog's; %i: the IOC */
    unsigned metas;
    struct {
        char key[40], value[100];
    } meta[EBPFMON_META_MAX];
} ebpfMonFormatMore;

/* Each: the length without a line feed, no terminator. burst may be NULL. */
size_t ebpfMonFormatPut(ebpfMonFormat format, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                        const ebpfMonFormatMore *more, char *buf, size_t size);

/* The line that stands for lines that were lost. In caPutLog's formats it is a put to LOG_LOST_CNT. */
size_t ebpfMonFormatLost(ebpfMonFormat format, uint64_t lost, const char *why, const ebpfMonFormatMore *more,
                         char *buf, size_t size);

/* The parts. */
size_t ebpfMonJsonLine(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, char *buf, size_t size);
size_t ebpfMonJsonLostLine(uint64_t lost, const char *why, char *buf, size_t size);
size_t ebpfMonCaPutText(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const ebpfMonFormatMore *more,
                        size_t limit, char *buf, size_t size);
size_t ebpfMonCaPutJson(const ebpfMonPut *put, const ebpfMonBurstInfo *burst, const ebpfMonFormatMore *more,
                        size_t limit, char *buf, size_t size);

/* Nonzero when the put changed nothing: it was done, and the value sent is the one there was. */
int ebpfMonPutUnchanged(const ebpfMonPut *put);

#endif
