/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "common/textReport.h"
#include "publish/publishRoom.h"

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
    room->putPublisher = ebpfMonPutPublisherNew(&uses->puts);
    room->tracePrinter = ebpfMonTracePrinterNew(uses->targets, printText);
    if (room->tracePrinter)
        room->slowChains = ebpfMonSlowChainsNew(uses->targets, room->tracePrinter, uses->walk);
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
