/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "common/textReport.h"
#include "model/filter.h"
#include "model/published.h"
#include "publish/publishRoom.h"

/* --- puts --- */

/* Splits RECORD.FIELD into the two names. */
static void splitName(const ebpfMonPut *put, char record[sizeof(put->pv)], const char **field)
{
    char *dot;

    ebpfMonTextSet(record, sizeof(put->pv), put->pv);
    dot = strrchr(record, '.');
    *field = "VAL";
    if (dot) {
        *dot = 0;
        *field = dot + 1;
    }
}

static void countPut(ebpfMonPutValues *values, const ebpfMonPut *put)
{
    unsigned i = 0;

    while (i < values->iocCount && strcmp(values->ioc[i].name, put->ioc) != 0)
        i++;
    if (i == EBPFMON_IOCS_MAX)
        i--;
    if (i == values->iocCount) {
        values->iocCount++;
        snprintf(values->ioc[i].name, sizeof(values->ioc[i].name), "%s",
                 i == EBPFMON_IOCS_MAX - 1 ? "others" : put->ioc);
    }
    values->ioc[i].puts++;
    values->ioc[i].denied += put->result == ebpfMonPutDenied;
    values->count++;
    values->denied += put->result == ebpfMonPutDenied;
    values->automatic += (uint64_t)ebpfMonPutIsAutomatic(put);
}

/* Nonzero: the record is a watched record; its values are updated. */
static int updateWatched(ebpfMonWatchValues *values, const char *record, const ebpfMonPut *put)
{
    int isWatched = 0;

    for (unsigned i = 0; i < values->count; i++) {
        ebpfMonWatchRow *row = &values->row[i];

        if (strcmp(row->record, record) != 0 && strcmp(row->real, record) != 0)
            continue;
        row->putCount++;
        isWatched = 1;
        if (put->at < row->putAt)
            continue; /* it is published late */
        ebpfMonPutLine(put, row->putLast, sizeof(row->putLast));
        row->putTime = put->time;
        row->putAt = put->at;
    }
    return isWatched;
}

static void publishPut(const ebpfMonPutCalls *calls, const ebpfMonPut *put, const char *record)
{
    ebpfMonGroup kind = ebpfMonPutIsAutomatic(put) ? ebpfMonGroupAutoPuts : ebpfMonGroupClientPuts;
    ebpfMonPublished *published = ebpfMonPublishedLock();
    int isWatched;

    countPut(&published->puts, put);
    ebpfMonPublishedKeepPut(published, put);
    ebpfMonPublishedSetTime(published, kind, put->time, put->at);
    ebpfMonPublishedSetTime(published, ebpfMonGroupPuts, put->time, put->at);
    isWatched = updateWatched(&published->watched, record, put);
    if (isWatched)
        ebpfMonPublishedSetTime(published, ebpfMonGroupWatch, put->time, put->at);
    ebpfMonPublishedUnlock();
    calls->log(calls->arg, put);
    ebpfMonPublishedNotify(kind); /* before PUT_CNT: a client that sees the count change finds the put in PUT_LAST */
    ebpfMonPublishedNotify(ebpfMonGroupPuts);
    if (isWatched)
        ebpfMonPublishedNotify(ebpfMonGroupWatch);
}

void ebpfMonPutPublish(const ebpfMonPutCalls *calls, ebpfMonPut *put)
{
    ebpfMonFilter f;
    char record[sizeof(put->pv)];
    const char *field;

    calls->judge(calls->arg, put); /* every put, even if the filter does not show it */
    ebpfMonPublishedAddUnexpected(put);
    splitName(put, record, &field);
    calls->getFilter(calls->arg, &f);
    if (ebpfMonFilterWantsPut(&f, record, field, put->host, put->user))
        publishPut(calls, put, record);
}

void ebpfMonPutPublishOwn(const ebpfMonPutCalls *calls, ebpfMonPut *put)
{
    ebpfMonFilter f;
    char record[sizeof(put->pv)];
    const char *field;

    splitName(put, record, &field);
    calls->getFilter(calls->arg, &f);
    if (put->result == ebpfMonPutDenied ||
        (ebpfMonPatternMatchesIoc(f.ioc, put->ioc) && ebpfMonFilterWantsPut(&f, record, field, put->host, put->user)))
        publishPut(calls, put, record);
    else
        calls->log(calls->arg, put);
}

/* --- the room --- */

static void printText(const char *text)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    ebpfMonTextReportAdd(report, "%s", text);
    ebpfMonTextReportPrint(report);
    fflush(stdout);
}

int ebpfMonPublishRoomMake(ebpfMonPublishRoom *room, const ebpfMonPublishRoomUses *uses)
{
    memset(room, 0, sizeof(*room));
    room->publisher = ebpfMonPublisherNew(uses->targets, uses->search, uses->losses, uses->audits, uses->costs);
    room->puts = uses->puts;
    room->tracePrinter = ebpfMonTracePrinterNew(uses->targets, printText);
    if (room->tracePrinter)
        room->slowChains = ebpfMonSlowChainsNew(uses->targets, room->tracePrinter, uses->walk);
    if (room->publisher && room->slowChains)
        return 0;
    ebpfMonPublishRoomFree(room);
    return -1;
}

void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room)
{
    ebpfMonSlowChainsFree(room->slowChains);
    ebpfMonTracePrinterFree(room->tracePrinter);
    ebpfMonPublisherFree(room->publisher);
    memset(room, 0, sizeof(*room));
}
