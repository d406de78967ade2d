/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/textReport.h"
#include "export/export.h"
#include "monitor/monitor.h"

static void logPut(void *arg, const ebpfMonPut *put)
{
    (void)arg;
    ebpfMonExportPut(put);
}

static void printText(const char *text)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();

    ebpfMonTextReportAdd(report, "%s", text);
    ebpfMonTextReportPrint(report);
    fflush(stdout);
}

int ebpfMonPublishRoomMake(ebpfMonMonitor *m)
{
    const ebpfMonPutPublisherCalls calls = { .getFilter = ebpfMonWatchRoomGetFilter, .log = logPut, .arg = m };
    ebpfMonPublishRoom *room = &m->publish;

    memset(room, 0, sizeof(*room));
    room->publisher = ebpfMonPublisherNew(m->targets, m->search, &m->watch.costs);
    room->putPublisher = ebpfMonPutPublisherNew(&calls);
    room->tracePrinter = ebpfMonTracePrinterNew(m->targets, printText);
    if (room->tracePrinter)
        room->slowChains = ebpfMonSlowChainsNew(room->tracePrinter, m->trace.walk);
    if (room->publisher && room->putPublisher && room->slowChains)
        return 0;
    ebpfMonPublishRoomFree(room);
    return -1;
}

void ebpfMonPublishRoomFree(ebpfMonPublishRoom *room)
{
    ebpfMonSlowChainsFree(room->slowChains);
    ebpfMonTracePrinterFree(room->tracePrinter);
    ebpfMonPutPublisherFree(room->putPublisher);
    ebpfMonPublisherFree(room->publisher);
    memset(room, 0, sizeof(*room));
}
