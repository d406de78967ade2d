/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsStdio.h>

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

void ebpfMonSlowChainsPublish(ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    static char text[EBPFMON_SLOW_SIZE];
    epicsTimeStamp end = ebpfMonTraceEnd(trace->last);
    int traced = ebpfMonTracePrinterIsOn() && ebpfMonTraceHas(trace, isTraced, t);
    size_t length;

    if (!traced && !ebpfMonTraceHas(trace, isShown, t))
        return;
    length = ebpfMonTraceText(t, trace, text, sizeof(text));
    if (traced)
        ebpfMonTracePrinterPrint(text);
    toBoard(text, length, &end);
}
