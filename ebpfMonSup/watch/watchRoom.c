/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/clock.h"
#include "probe/kernelTables.h"
#include "probe/preemption.h"
#include "probe/attach.h"
#include "watch/watchRoom.h"

int ebpfMonWatchRoomMake(ebpfMonWatchRoom *room, ebpfMonTargets *targets, ebpfMonRequests *requests,
                         ebpfMonAudits *audits, int watchSelf, const ebpfMonFollowerSink *sink)
{
    const ebpfMonRecordTablesKernel kernel = {
        .tables = ebpfMonKernelTables(), .isRealTime = ebpfMonKernelIsRealTime(),
        .setRecordIndex = ebpfMonKernelSetRecordIndex, .removeRecordIndex = ebpfMonKernelRemoveRecordIndex,
        .setArray = ebpfMonKernelSetArray, .removeArray = ebpfMonKernelRemoveArray,
        .setList = ebpfMonKernelSetList, .removeLists = ebpfMonKernelRemoveLists,
        .beginPassNotes = ebpfMonKernelBeginPassNotes, .getPassNotes = ebpfMonKernelGetPassNotes,
        .takeRoot = ebpfMonKernelTakeRoot, .reserveRoots = ebpfMonKernelReserveRoots,
        .removeRoots = ebpfMonKernelRemoveRoots, .removeAsyncs = ebpfMonKernelRemoveAsyncs,
    };
    const ebpfMonGovernorKernel governorKernel = {
        .now = ebpfMonClockMonotonic,
        .setTarget = ebpfMonKernelSetTarget, .removeTarget = ebpfMonKernelRemoveTarget,
        .removeThreads = ebpfMonKernelRemoveThreads, .getHits = ebpfMonKernelGetHits,
        .watchScheduler = ebpfMonKernelWatchScheduler, .attach = ebpfMonAttachSet,
    };

    memset(room, 0, sizeof(*room));
    ebpfMonCalibrate(&room->costs);
    ebpfMonFeature.returnUnderSeccomp = ebpfMonSeccompTryReturn();
    room->recordTables = ebpfMonRecordTablesNew(targets, audits, &kernel);
    room->governor = (ebpfMonGovernor){ targets, room->recordTables, &room->costs, governorKernel };
    if (room->recordTables)
        room->follower = ebpfMonFollowerNew(targets, requests, room->recordTables, &room->governor, watchSelf, sink);
    if (room->follower)
        return 0;
    ebpfMonWatchRoomFree(room);
    return -1;
}

void ebpfMonWatchRoomFree(ebpfMonWatchRoom *room)
{
    ebpfMonFollowerFree(room->follower);
    ebpfMonRecordTablesFree(room->recordTables);
    memset(room, 0, sizeof(*room));
}
