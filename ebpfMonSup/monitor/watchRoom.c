/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/monitor.h"
#include "probe/kernelTables.h"
#include "probe/seccompTrial.h"

static void onIocsChanged(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherWake(m->publish.publisher);
    ebpfMonEventThreadWake(m->eventThread); /* puts may wait for the links of an IOC */
    ebpfMonRecSyncWake(m->recSync);
}

static void onTargetsChanged(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPacketThreadWake(m->packetThread); /* the namespaces may be others */
}

static void onTrouble(void *arg, const char *text)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherSetTrouble(m->publish.publisher, text);
}

int ebpfMonWatchRoomMake(ebpfMonMonitor *m, const ebpfMonFilter *first)
{
    ebpfMonWatchRoom *room = &m->watch;
    ebpfMonTargets *targets = m->targets;
    const ebpfMonRecordTablesKernel kernel = {
        .tables = ebpfMonKernelTables(),
        .setRecordIndex = ebpfMonKernelSetRecordIndex, .removeRecordIndex = ebpfMonKernelRemoveRecordIndex,
        .setArray = ebpfMonKernelSetArray, .removeArray = ebpfMonKernelRemoveArray,
        .setList = ebpfMonKernelSetList, .removeList = ebpfMonKernelRemoveList,
        .beginMoved = ebpfMonKernelBeginMoved, .getMoved = ebpfMonKernelGetMoved,
        .removeRoots = ebpfMonKernelRemoveRoots,
    };
    const ebpfMonFollowerSink sink = { .iocsChanged = onIocsChanged, .trouble = onTrouble, .arg = m };

    memset(room, 0, sizeof(*room));
    ebpfMonCalibrate(&room->costs);
    ebpfMonFeature.returnUnderSeccomp = ebpfMonSeccompTryReturn();
    ebpfMonTargetsSetListener(targets, onTargetsChanged, m);
    room->requests = ebpfMonRequestsNew(first);
    room->recordTables = ebpfMonRecordTablesNew(targets, &kernel);
    if (room->recordTables)
        room->governor = ebpfMonGovernorNew(targets, room->recordTables, &room->costs);
    if (room->requests && room->governor)
        room->follower = ebpfMonFollowerNew(targets, room->requests, room->recordTables, room->governor,
                                         m->settings.watchSelf, &sink);
    if (room->follower)
        return 0;
    ebpfMonWatchRoomFree(room);
    return -1;
}

void ebpfMonWatchRoomGetFilter(void *monitor, ebpfMonFilter *filter)
{
    ebpfMonMonitor *m = monitor;

    ebpfMonRequestsGetFilter(m->watch.requests, filter);
}

void ebpfMonWatchRoomFree(ebpfMonWatchRoom *room)
{
    ebpfMonFollowerFree(room->follower);
    ebpfMonGovernorFree(room->governor);
    ebpfMonRecordTablesFree(room->recordTables);
    ebpfMonRequestsFree(room->requests);
    memset(room, 0, sizeof(*room));
}
