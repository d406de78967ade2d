/* SPDX-License-Identifier: BSD-3-Clause */
/* The one board and its lock. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>
#include <errlog.h>

#include "model/board.h"

static ebpfMonBoard theBoard; /* some 2 MB, most of it never touched: pages come when they are used */
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

ebpfMonBoard *ebpfMonBoardLock(void)
{
    boardOnce();
    epicsMutexMustLock(boardLock);
    return &theBoard;
}

void ebpfMonBoardUnlock(void)
{
    epicsMutexUnlock(boardLock);
}

const ebpfMonPut *ebpfMonBoardPut(const ebpfMonBoard *board, unsigned i)
{
    if (i >= board->putRecent || i >= EBPFMON_PUTS_MAX)
        return NULL;
    return &board->put[(board->putHead + EBPFMON_PUTS_MAX - i) % EBPFMON_PUTS_MAX];
}

void ebpfMonBoardListen(void (*changed)(ebpfMonGroup group))
{
    ebpfMonBoardLock();
    boardListener = changed;
    ebpfMonBoardUnlock();
}

void ebpfMonBoardChanged(ebpfMonGroup group)
{
    void (*changed)(ebpfMonGroup group);

    /* Called outside of the lock: the listener takes locks of its own. */
    ebpfMonBoardLock();
    changed = boardListener;
    ebpfMonBoardUnlock();
    if (changed)
        changed(group);
}

int ebpfMonBoardWatch(const char *record)
{
    ebpfMonBoard *board;
    ebpfMonWatchRow *row;
    unsigned i;
    int found = -1;

    if (!record[0] || strlen(record) >= EBPFMON_NAME_SIZE)
        return -1;
    board = ebpfMonBoardLock();
    for (i = 0; i < board->watchCount && strcmp(board->watch[i].record, record) != 0; i++)
        ;
    if (i < board->watchCount) {
        found = (int)i;
    } else if (i < EBPFMON_WATCH_MAX) {
        row = &board->watch[i];
        memset(row, 0, sizeof(*row));
        strcpy(row->record, record);
        strcpy(row->putLast, EBPFMON_NO_PUT);
        row->latMean = row->latP99 = row->latMax = NAN;
        board->watchCount++;
        found = (int)i;
    }
    ebpfMonBoardUnlock();
    return found;
}

void ebpfMonBoardHistSelect(const char *record)
{
    ebpfMonBoard *board = ebpfMonBoardLock();

    ebpfMonTextCopy(board->histSel, sizeof(board->histSel), record);
    ebpfMonBoardUnlock();
}

/* Under the lock. */
static void badChanged(ebpfMonBoard *board)
{
    uint64_t open = board->badCount - board->badAcked;

    board->badOpen = open < INT_MAX ? (int)open : INT_MAX;
}

void ebpfMonBoardBad(const ebpfMonPut *put)
{
    char line[EBPFMON_LINE_SIZE];
    ebpfMonBoard *board;
    int first;

    if (!put->unexpected)
        return;
    board = ebpfMonBoardLock();
    board->bad[board->badCount++ % EBPFMON_BAD_MAX] = *put;
    first = !board->badOpen;
    badChanged(board);
    board->time[ebpfMonGroupBad] = put->time;
    ebpfMonBoardUnlock();
    ebpfMonBoardChanged(ebpfMonGroupBad);
    if (first) {
        ebpfMonPutLine(put, line, sizeof(line));
        errlogSevPrintf(errlogMajor, "ebpfMon: unexpected put (%s): %.600s. See PUT_BAD_LOG for it and all that "
                        "follow; acknowledge by PUT_BAD_ACK or ebpfMonPutAck\n", put->rule, line);
    }
}

const ebpfMonPut *ebpfMonBoardBadPut(const ebpfMonBoard *board, unsigned i)
{
    if (i >= EBPFMON_BAD_MAX || i >= board->badCount - board->badAcked)
        return NULL;
    return &board->bad[(board->badCount - 1 - i) % EBPFMON_BAD_MAX];
}

uint64_t ebpfMonBoardBadNumber(void)
{
    uint64_t number = ebpfMonBoardLock()->badCount;

    ebpfMonBoardUnlock();
    return number;
}

void ebpfMonBoardBadShown(ebpfMonShown where, uint64_t number)
{
    ebpfMonBoard *board = ebpfMonBoardLock();

    if (number > board->badShown[where])
        board->badShown[where] = number;
    ebpfMonBoardUnlock();
}

unsigned ebpfMonBoardBadAck(ebpfMonShown where)
{
    ebpfMonBoard *board = ebpfMonBoardLock();
    uint64_t upTo = board->badShown[where], before = board->badAcked;
    int changed;
    unsigned left;

    if (board->badShown[ebpfMonShownByPvs] > upTo)
        upTo = board->badShown[ebpfMonShownByPvs];
    changed = upTo > board->badAcked;
    if (changed) {
        board->badAcked = upTo;
        badChanged(board);
        epicsTimeGetCurrent(&board->time[ebpfMonGroupBad]);
    }
    left = (unsigned)board->badOpen;
    ebpfMonBoardUnlock();
    if (changed) {
        ebpfMonBoardChanged(ebpfMonGroupBad);
        errlogSevPrintf(errlogInfo, "ebpfMon: %llu unexpected puts acknowledged, %u open\n",
                        (unsigned long long)(upTo - before), left);
    }
    return left;
}
