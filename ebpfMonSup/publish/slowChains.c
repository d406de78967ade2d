/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "model/published.h"
#include "publish/slowChains.h"
#include "trace/traceText.h"

struct ebpfMonSlowChains {
    ebpfMonTracePrinter *printer;
    ebpfMonTraceWalk    *walk;
    char text[EBPFMON_SLOW_SIZE]; /* of one trace */
};

/* For the walk through a trace. */
typedef struct {
    const ebpfMonTarget *t;
    ebpfMonTracePrinter *printer;
} recordTest;

ebpfMonSlowChains *ebpfMonSlowChainsNew(ebpfMonTracePrinter *printer, ebpfMonTraceWalk *walk)
{
    ebpfMonSlowChains *slow = calloc(1, sizeof(*slow));

    if (!slow)
        return NULL;
    slow->printer = printer;
    slow->walk = walk;
    return slow;
}

void ebpfMonSlowChainsFree(ebpfMonSlowChains *slow)
{
    free(slow);
}

static int isPrinted(void *arg, uint32_t index)
{
    const recordTest *test = arg;

    return ebpfMonTracePrinterMatches(test->printer, ebpfMonCatalogueName(test->t->cat, index));
}

static int isShown(void *arg, uint32_t index)
{
    const recordTest *test = arg;

    return !test->t->how || test->t->how[index] & EBPFMON_SHOWN;
}

static int isTracePrinted(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    recordTest test = { t, slow->printer };

    return ebpfMonTracePrinterIsOn(slow->printer) && ebpfMonTraceHasRecord(trace, isPrinted, &test);
}

static int isTraceShown(ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    recordTest test = { t, NULL };

    return ebpfMonTraceHasRecord(trace, isShown, &test);
}

int ebpfMonSlowChainsWrites(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    return isTraceShown(t, trace) || isTracePrinted(slow, t, trace);
}

void ebpfMonSlowChainsPrepend(char *buf, size_t size, const char *text, size_t length)
{
    size_t keep = strlen(buf);

    if (length >= size)
        length = size - 1;
    if (length + keep >= size) {
        keep = size - 1 - length;
        while (keep > 0 && buf[keep - 1] != '\n')
            keep--;
    }
    memmove(buf + length, buf, keep);
    memcpy(buf, text, length);
    buf[length + keep] = 0;
}

void ebpfMonSlowChainsPublish(ebpfMonSlowChains *slow, ebpfMonTarget *t, const ebpfMonTrace *trace,
                              uint64_t unixOffset)
{
    int printed = isTracePrinted(slow, t, trace);
    epicsTimeStamp end = ebpfMonClockStamp(trace->last->chain.head.ktime + unixOffset);
    ebpfMonPublished *published;
    size_t length;

    if (!printed && !isTraceShown(t, trace))
        return;
    length = ebpfMonTraceTextWrite(slow->walk, t, trace, unixOffset, slow->text, sizeof(slow->text));
    if (printed)
        ebpfMonTracePrinterAdd(slow->printer, slow->text);
    published = ebpfMonPublishedLock();
    ebpfMonSlowChainsPrepend(published->chains.slowText, sizeof(published->chains.slowText), slow->text, length);
    published->chains.slowCount++;
    published->time[ebpfMonGroupSlow] = end;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupSlow);
}
