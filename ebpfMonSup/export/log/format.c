/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <epicsTime.h>

#include "export/log/format.h"

#define VALUE_MAX 400 /* caPutLog's JSON: MAX_ARRAY_SIZE_BYTES */
#define VALUE_MIN 6

size_t ebpfMonFormatPut(ebpfMonFormat format, const ebpfMonPut *put, const ebpfMonBurstInfo *burst,
                        const ebpfMonFormatMore *more, char *buf, size_t size)
{
    size_t len = 0;

    if (format == ebpfMonFormatJson)
        return ebpfMonJsonLine(put, burst, buf, size);
    for (size_t limit = VALUE_MAX; limit >= VALUE_MIN; limit /= 2) {
        len = format == ebpfMonFormatCaPutText ? ebpfMonCaPutText(put, burst, more, limit, buf, size) :
              ebpfMonCaPutJson(put, burst, more, limit, buf, size);
        if (len <= EBPFMON_CAPUTLINE_MAX)
            break;
    }
    return len;
}

size_t ebpfMonFormatLost(ebpfMonFormat format, uint64_t lost, const char *why, const ebpfMonFormatMore *more,
                         char *buf, size_t size)
{
    static ebpfMonPut put; /* large; the writer alone is here */

    if (format == ebpfMonFormatJson)
        return ebpfMonJsonLostLine(lost, why, buf, size);
    memset(&put, 0, sizeof(put));
    epicsTimeGetCurrent(&put.time);
    strcpy(put.ioc, "ebpfMon");
    strcpy(put.user, "ebpfMon");
    strcpy(put.pv, "LOG_LOST_CNT");
    snprintf(put.val, sizeof(put.val), "%" PRIu64, lost);
    put.isNumber = 1;
    put.number = (double)lost;
    put.count = 1;
    return ebpfMonFormatPut(format, &put, NULL, more, buf, size);
}

int ebpfMonPutUnchanged(const ebpfMonPut *put)
{
    size_t len;

    if (!put->hasOld || put->result == ebpfMonPutFailed || put->result == ebpfMonPutDenied ||
        put->result == ebpfMonPutLost)
        return 0;
    if (put->isNumber && put->oldIsNumber)
        return put->number == put->oldNumber || strcmp(put->val, put->old) == 0; /* NaN is not equal to itself */
    if (strcmp(put->val, put->old) != 0)
        return 0;
    len = strlen(put->val);
    /* an array that is shown in part may have changed where it is not shown */
    return len < 3 || strcmp(put->val + len - 3, "...") != 0;
}
