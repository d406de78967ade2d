/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <epicsTime.h>

#include "export/log/format.h"

#define VALUE_MAX 400 /* the limit of caPutLog's JSON: MAX_ARRAY_SIZE_BYTES */
#define VALUE_MIN 6

void ebpfMonFormatterFree(ebpfMonFormatter *f)
{
    ebpfMonJsonFree(&f->json);
}

size_t ebpfMonFormatPut(ebpfMonFormatter *f, ebpfMonFormat format, const ebpfMonPut *put,
                        const ebpfMonBurstInfo *burst, char *buf, size_t size)
{
    size_t len = 0;

    if (format == ebpfMonFormatJson)
        return ebpfMonFormatJsonLine(f, put, burst, buf, size);
    for (size_t limit = VALUE_MAX; limit >= VALUE_MIN; limit /= 2) {
        len = format == ebpfMonFormatCaPutText ? ebpfMonFormatCaPutTextLine(f, put, burst, limit, buf, size) :
              ebpfMonFormatCaPutJsonLine(f, put, burst, limit, buf, size);
        if (len <= EBPFMON_CAPUTLINE_MAX)
            break;
    }
    return len;
}

size_t ebpfMonFormatLoss(ebpfMonFormatter *f, ebpfMonFormat format, uint64_t lost, const char *why, char *buf,
                         size_t size)
{
    ebpfMonPut *put = &f->loss;

    if (format == ebpfMonFormatJson)
        return ebpfMonFormatJsonLossLine(f, lost, why, buf, size);
    memset(put, 0, sizeof(*put));
    epicsTimeGetCurrent(&put->time);
    strcpy(put->ioc, "ebpfMon");
    strcpy(put->user, "ebpfMon");
    strcpy(put->pv, "LOG_LOST_CNT");
    snprintf(put->val, sizeof(put->val), "%" PRIu64, lost);
    put->isNumber = 1;
    put->number = (double)lost;
    put->count = 1;
    return ebpfMonFormatPut(f, format, put, NULL, buf, size);
}
