/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <errlog.h>

#include "export/destination.h"

#define BACKOFF 1.0 /* s */

void ebpfMonDestinationSetTrouble(ebpfMonDestination *o, double now, double most, const char *format, ...)
{
    char why[sizeof(o->why)];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    o->backoff = o->backoff ? o->backoff * 2 : BACKOFF;
    if (o->backoff > most)
        o->backoff = most;
    o->retryAt = now + o->backoff;
    if (o->trouble && strcmp(why, o->why) == 0)
        return;
    o->trouble = 1;
    strcpy(o->why, why);
    errlogSevPrintf(errlogMajor, "ebpfMon: log %s: %s\n", o->name, why);
}

void ebpfMonDestinationSetWorking(ebpfMonDestination *o)
{
    o->backoff = 0;
    if (!o->trouble)
        return;
    o->trouble = 0;
    if (o->lostNow)
        errlogSevPrintf(errlogMinor, "ebpfMon: log %s: works again, %" PRIu64 " lines were lost\n", o->name,
                        o->lostNow);
    else
        errlogSevPrintf(errlogInfo, "ebpfMon: log %s: works again, nothing was lost\n", o->name);
}

void ebpfMonDestinationAddLost(ebpfMonDestination *o, uint64_t lines)
{
    o->lost += lines;
    o->lostNow += lines;
}

uint64_t ebpfMonLineCount(const char *text, size_t len)
{
    uint64_t n = 0;

    for (const char *at = text; (at = memchr(at, '\n', len - (size_t)(at - text))); at++)
        n++;
    return n;
}
