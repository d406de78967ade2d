/* SPDX-License-Identifier: BSD-3-Clause */
/* The one board and its lock. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

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
