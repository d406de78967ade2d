/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsStdio.h>

#include "model/board.h"
#include "monitor/slow.h"
#include "monitor/traceShell.h"
#include "monitor/traceText.h"

static int isTraced(void *arg, uint32_t index)
{
    const ebpfMonTarget *t = arg;

    return ebpfMonTraceMatches(ebpfMonCatalogueName(t->cat, index));
}

static int isShown(void *arg, uint32_t index)
{
    const ebpfMonTarget *t = arg;

    return !t->how || t->how[index] & EBPFMON_SHOWN;
}

/* Newest first; what falls off the end falls off at a line. */
static void toBoard(const char *text, size_t length, const epicsTimeStamp *end)
{
    ebpfMonBoard *board = ebpfMonBoardLock();
    size_t keep = strlen(board->slow);

    if (length + keep >= sizeof(board->slow)) {
        keep = sizeof(board->slow) - 1 - length;
        while (keep > 0 && board->slow[keep - 1] != '\n')
            keep--;
    }
    memmove(board->slow + length, board->slow, keep);
    memcpy(board->slow, text, length);
    board->slow[length + keep] = 0;
    board->slowCount++;
    board->time[ebpfMonGroupSlow] = *end;
    ebpfMonBoardUnlock();
    ebpfMonBoardChanged(ebpfMonGroupSlow);
}

void ebpfMonSlowTell(ebpfMonTarget *t, const ebpfMonTrace *trace)
{
    static char text[EBPFMON_SLOW_SIZE];
    epicsTimeStamp end = ebpfMonTraceEnd(trace->last);
    int traced = ebpfMonTraceOn() && ebpfMonTraceHas(trace, isTraced, t);
    size_t length;

    if (!traced && !ebpfMonTraceHas(trace, isShown, t))
        return;
    length = ebpfMonTraceText(t, trace, text, sizeof(text));
    if (traced)
        ebpfMonTracePrint(text);
    toBoard(text, length, &end);
}
