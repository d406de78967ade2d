/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "export/export.h"
#include "model/board.h"
#include "model/filter.h"
#include "model/rules.h"
#include "monitor/asked.h"
#include "monitor/author.h"
#include "monitor/puts.h"

/* RECORD.FIELD in two. */
static void split(const ebpfMonPut *put, char record[sizeof(put->pv)], const char **field)
{
    char *dot;

    snprintf(record, sizeof(put->pv), "%s", put->pv);
    dot = strrchr(record, '.');
    *field = "VAL";
    if (dot) {
        *dot = 0;
        *field = dot + 1;
    }
}

static void count(ebpfMonBoard *board, const ebpfMonPut *put)
{
    unsigned i = 0;

    while (i < board->putIocs && strcmp(board->putIoc[i].name, put->ioc) != 0)
        i++;
    if (i == EBPFMON_IOCS_MAX)
        i--;
    if (i == board->putIocs) {
        board->putIocs++;
        snprintf(board->putIoc[i].name, sizeof(board->putIoc[i].name), "%s",
                 i == EBPFMON_IOCS_MAX - 1 ? "others" : put->ioc);
    }
    board->putIoc[i].puts++;
    board->putIoc[i].denied += put->result == ebpfMonPutDenied;
    board->putCount++;
    board->putDenied += put->result == ebpfMonPutDenied;
}

void ebpfMonPutsDone(ebpfMonPut *put)
{
    ebpfMonFilter f;
    ebpfMonBoard *board;
    char record[sizeof(put->pv)];
    const char *field;
    int watched = 0;

    ebpfMonAuthorText(put);
    ebpfMonRulesJudge(put); /* every put, whatever the filter shows */
    ebpfMonBoardBad(put);
    split(put, record, &field);
    ebpfMonAskedFilterGet(&f);
    if (!ebpfMonFilterWantsPut(&f, record, field, put->host, put->user))
        return;
    board = ebpfMonBoardLock();
    count(board, put);
    board->putHead = (board->putHead + 1) % EBPFMON_PUTS_MAX;
    if (board->putRecent < EBPFMON_PUTS_MAX)
        board->putRecent++;
    board->put[board->putHead] = *put;
    board->time[ebpfMonGroupPuts] = put->time;
    for (unsigned i = 0; i < board->watchCount; i++) {
        ebpfMonWatchRow *w = &board->watch[i];

        if (strcmp(w->record, record) != 0 && strcmp(w->real, record) != 0)
            continue;
        w->putCount++;
        ebpfMonPutLine(put, w->putLast, sizeof(w->putLast));
        w->putTime = put->time;
        board->time[ebpfMonGroupWatch] = put->time;
        watched = 1;
    }
    ebpfMonBoardUnlock();
    ebpfMonExportPut(put);
    ebpfMonBoardChanged(ebpfMonGroupPuts);
    if (watched)
        ebpfMonBoardChanged(ebpfMonGroupWatch);
}
