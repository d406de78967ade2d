/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/watching.h"
#include "probe/kernelTables.h"
#include "publish/publisher.h"

static void onIocsChanged(void *arg)
{
    (void)arg;
    ebpfMonPublisherWake();
}

static void onTrouble(void *arg, const char *text)
{
    (void)arg;
    ebpfMonPublisherSetTrouble(text);
}

int ebpfMonWatchingMake(ebpfMonWatching *w, ebpfMonTargets *targets, const ebpfMonFilter *first, int watchSelf)
{
    const ebpfMonRecordTablesKernel kernel = {
        .tables = ebpfMonKernelTables(),
        .setRecordIndex = ebpfMonKernelSetRecordIndex, .removeRecordIndex = ebpfMonKernelRemoveRecordIndex,
        .setArray = ebpfMonKernelSetArray, .removeArray = ebpfMonKernelRemoveArray,
        .removeRoots = ebpfMonKernelRemoveRoots,
    };
    const ebpfMonFollowerSink sink = { .iocsChanged = onIocsChanged, .trouble = onTrouble };

    memset(w, 0, sizeof(*w));
    ebpfMonCalibrate(&w->costs);
    ebpfMonCost = w->costs;
    w->requests = ebpfMonTheRequests = ebpfMonRequestsNew(first);
    w->recordTables = ebpfMonRecordTablesNew(targets, &kernel);
    if (w->recordTables)
        w->governor = ebpfMonGovernorNew(targets, w->recordTables, &w->costs);
    if (w->requests && w->governor)
        w->follower = ebpfMonFollowerNew(targets, w->requests, w->recordTables, w->governor, watchSelf, &sink);
    if (w->follower)
        return 0;
    ebpfMonWatchingFree(w);
    return -1;
}

void ebpfMonWatchingFree(ebpfMonWatching *w)
{
    ebpfMonFollowerFree(w->follower);
    ebpfMonGovernorFree(w->governor);
    ebpfMonRecordTablesFree(w->recordTables);
    ebpfMonRequestsFree(w->requests);
    memset(w, 0, sizeof(*w));
    ebpfMonTheRequests = NULL;
}
