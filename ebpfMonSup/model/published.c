/* SPDX-License-Identifier: BSD-3-Clause */
/* The one published and its lock. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/published.h"

static ebpfMonPublished theBoard; /* some 2 MB, most of it never touched: pages come when they are used */
static epicsMutexId boardLock;
static void (*boardListener)(ebpfMonGroup group);

static void boardInit(void *unused)
{
    (void)unused;
    boardLock = epicsMutexMustCreate();
    theBoard.state = ebpfMonStarting;
    snprintf(theBoard.stateMsg, sizeof(theBoard.stateMsg), "starting: the monitor begins after iocInit");
    strcpy(theBoard.putCaPutLog, EBPFMON_NO_PUT);
    strcpy(theBoard.logMsg, EBPFMON_NO_LOG);
    strcpy(theBoard.otlpMsg, EBPFMON_NO_OTLP);
    snprintf(theBoard.rulesMsg, sizeof(theBoard.rulesMsg), "no rules: every put is expected");
}

/* Records and tests may be first, before any start-up code of ours has run. */
static void boardOnce(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, boardInit, NULL);
}

ebpfMonPublished *ebpfMonPublishedLock(void)
{
    boardOnce();
    epicsMutexMustLock(boardLock);
    return &theBoard;
}

void ebpfMonPublishedUnlock(void)
{
    epicsMutexUnlock(boardLock);
}

const ebpfMonPut *ebpfMonPublishedGetPut(const ebpfMonPublished *published, unsigned i)
{
    if (i >= published->putRecent || i >= EBPFMON_PUTS_MAX)
        return NULL;
    return &published->put[(published->putHead + EBPFMON_PUTS_MAX - i) % EBPFMON_PUTS_MAX];
}

void ebpfMonPublishedSetListener(void (*changed)(ebpfMonGroup group))
{
    ebpfMonPublishedLock();
    boardListener = changed;
    ebpfMonPublishedUnlock();
}

void ebpfMonPublishedNotify(ebpfMonGroup group)
{
    void (*changed)(ebpfMonGroup group);

    /* Called outside of the lock: the listener takes locks of its own. */
    ebpfMonPublishedLock();
    changed = boardListener;
    ebpfMonPublishedUnlock();
    if (changed)
        changed(group);
}

int ebpfMonPublishedAddWatch(const char *record)
{
    ebpfMonPublished *published;
    ebpfMonWatchRow *row;
    unsigned i;
    int found = -1;

    if (!record[0] || strlen(record) >= EBPFMON_NAME_SIZE)
        return -1;
    published = ebpfMonPublishedLock();
    for (i = 0; i < published->watchCount && strcmp(published->watch[i].record, record) != 0; i++)
        ;
    if (i < published->watchCount) {
        found = (int)i;
    } else if (i < EBPFMON_WATCH_MAX) {
        row = &published->watch[i];
        memset(row, 0, sizeof(*row));
        strcpy(row->record, record);
        strcpy(row->putLast, EBPFMON_NO_PUT);
        row->latMean = row->latP99 = row->latMax = NAN;
        published->watchCount++;
        found = (int)i;
    }
    ebpfMonPublishedUnlock();
    return found;
}

void ebpfMonPublishedSelectHist(const char *record)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    ebpfMonTextCopy(published->histSel, sizeof(published->histSel), record);
    ebpfMonPublishedUnlock();
}

/* Under the lock. */
static void badChanged(ebpfMonPublished *published)
{
    uint64_t open = published->badCount - published->badAcked;

    published->badOpen = open < INT_MAX ? (int)open : INT_MAX;
}

void ebpfMonPublishedAddBad(const ebpfMonPut *put)
{
    char line[EBPFMON_LINE_SIZE];
    ebpfMonPublished *published;
    int first;

    if (!put->unexpected)
        return;
    published = ebpfMonPublishedLock();
    published->bad[published->badCount++ % EBPFMON_BAD_MAX] = *put;
    first = !published->badOpen;
    badChanged(published);
    published->time[ebpfMonGroupBad] = put->time;
    ebpfMonPublishedUnlock();
    ebpfMonPublishedNotify(ebpfMonGroupBad);
    if (first) {
        ebpfMonPutLine(put, line, sizeof(line));
        errlogSevPrintf(errlogMajor, "ebpfMon: unexpected put (%s): %.600s. See PUT_BAD_LOG for it and all that "
                        "follow; acknowledge by PUT_BAD_ACK or ebpfMonPutAck\n", put->rule, line);
    }
}

const ebpfMonPut *ebpfMonPublishedGetBad(const ebpfMonPublished *published, unsigned i)
{
    if (i >= EBPFMON_BAD_MAX || i >= published->badCount - published->badAcked)
        return NULL;
    return &published->bad[(published->badCount - 1 - i) % EBPFMON_BAD_MAX];
}

uint64_t ebpfMonPublishedGetBadNumber(void)
{
    uint64_t number = ebpfMonPublishedLock()->badCount;

    ebpfMonPublishedUnlock();
    return number;
}

void ebpfMonPublishedSetBadShown(ebpfMonShown where, uint64_t number)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();

    if (number > published->badShown[where])
        published->badShown[where] = number;
    ebpfMonPublishedUnlock();
}

unsigned ebpfMonPublishedAckBad(ebpfMonShown where)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    uint64_t upTo = published->badShown[where], before = published->badAcked;
    int changed;
    unsigned left;

    if (published->badShown[ebpfMonShownByPvs] > upTo)
        upTo = published->badShown[ebpfMonShownByPvs];
    changed = upTo > published->badAcked;
    if (changed) {
        published->badAcked = upTo;
        badChanged(published);
        epicsTimeGetCurrent(&published->time[ebpfMonGroupBad]);
    }
    left = (unsigned)published->badOpen;
    ebpfMonPublishedUnlock();
    if (changed) {
        ebpfMonPublishedNotify(ebpfMonGroupBad);
        errlogSevPrintf(errlogInfo, "ebpfMon: %llu unexpected puts acknowledged, %u open\n",
                        (unsigned long long)(upTo - before), left);
    }
    return left;
}
