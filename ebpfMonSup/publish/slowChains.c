/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsStdio.h>

#include "common/clock.h"
#include "model/published.h"
#include "publish/slowChains.h"
#include "publish/tracePrinter.h"
#include "trace/traceText.h"

static int isTraced(void *arg, uint32_t index)
{
    const ebpfMonTarget *t = arg;

    return ebpfMonTracePrinterMatches(ebpfMonCatalogueName(t->cat, index));
}

static int isShown(void *arg, uint32_t index)
{
    const ebpfMonTarget *t = arg;

    return !t->how || t->how[index] & EBPFMON_SHOWN;
}

/* Newest first; what falls off the end falls off at a line. */
static void toBoard(const char *text, size_t length, const epicsTimeStamp *end)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    size_t keep = strlen(published->slow);

    if (length + keep >= sizeof(published->slow)) {
        keep = sizeof(published->slow) - 1 - length;
        while (keep > 0 && published->slow[keep - 1] != '\n')
            keep--;
    }
    memmove(published->slow + length, published->slow, keep);
    memcpy(published->slow, text, length);
    published->slow[length + keep] = 0;
    published->slowCount++;
    published->time[ebpfMonGroupSlow] = *end;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupSlow);
}

void ebpfMonSlowChainsPublish(ebpfMonTraceWalk *walk, ebpfMonTarget *t, const ebpfMonTrace *trace, uint64_t unixOffset)
{
    static char text[EBPFMON_SLOW_SIZE];
    epicsTimeStamp end = ebpfMonClockStamp(trace->last->chain.head.ktime + unixOffset);
    int traced = ebpfMonTracePrinterIsOn() && ebpfMonTraceHasRecord(trace, isTraced, t);
    size_t length;

    if (!traced && !ebpfMonTraceHasRecord(trace, isShown, t))
        return;
    length = ebpfMonTraceTextWrite(walk, t, trace, unixOffset, text, sizeof(text));
    if (traced)
        ebpfMonTracePrinterPrint(text);
    toBoard(text, length, &end);
}
