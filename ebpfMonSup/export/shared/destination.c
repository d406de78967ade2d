/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <errlog.h>

#include "common/text.h"
#include "export/shared/destination.h"

#define BACKOFF 1.0 /* s */

void ebpfMonDestinationSetTrouble(ebpfMonDestination *d, double now, double most, const char *format, ...)
{
    char why[sizeof(d->why)];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    ebpfMonTextClean(why, sizeof(why)); /* a server may have sent a part of it */
    d->backoff = d->backoff ? d->backoff * 2 : BACKOFF;
    if (d->backoff > most)
        d->backoff = most;
    d->retryAt = now + d->backoff;
    if (d->trouble && strcmp(why, d->why) == 0)
        return;
    d->trouble = 1;
    strcpy(d->why, why);
    errlogSevPrintf(errlogMajor, "ebpfMon: log %s: %s\n", d->name, why);
}

void ebpfMonDestinationSetWorking(ebpfMonDestination *d)
{
    d->backoff = 0;
    if (!d->trouble)
        return;
    d->trouble = 0;
    if (d->lostNow)
        errlogSevPrintf(errlogMinor, "ebpfMon: log %s: works again, %" PRIu64 " lines were lost\n", d->name,
                        d->lostNow);
    else
        errlogSevPrintf(errlogInfo, "ebpfMon: log %s: works again, nothing was lost\n", d->name);
}

void ebpfMonDestinationAddLost(ebpfMonDestination *d, uint64_t lines)
{
    d->lost += lines;
    d->lostNow += lines;
}

uint64_t ebpfMonDestinationCountLines(const char *text, size_t len)
{
    uint64_t n = 0;

    for (const char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text))); at++)
        n++;
    return n;
}
