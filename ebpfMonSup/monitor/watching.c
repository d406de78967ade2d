/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/monitor.h"
#include "probe/kernelTables.h"

static void onIocsChanged(void *arg)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherWake(m->publisher);
}

static void onTrouble(void *arg, const char *text)
{
    ebpfMonMonitor *m = arg;

    ebpfMonPublisherSetTrouble(m->publisher, text);
}

int ebpfMonWatchingMake(ebpfMonMonitor *m, const ebpfMonFilter *first)
{
    ebpfMonWatching *w = &m->watching;
    ebpfMonTargets *targets = m->targets;
    const ebpfMonRecordTablesKernel kernel = {
        .tables = ebpfMonKernelTables(),
        .setRecordIndex = ebpfMonKernelSetRecordIndex, .removeRecordIndex = ebpfMonKernelRemoveRecordIndex,
        .setArray = ebpfMonKernelSetArray, .removeArray = ebpfMonKernelRemoveArray,
        .removeRoots = ebpfMonKernelRemoveRoots,
    };
    const ebpfMonFollowerSink sink = { .iocsChanged = onIocsChanged, .trouble = onTrouble, .arg = m };

    memset(w, 0, sizeof(*w));
    ebpfMonCalibrate(&w->costs);
    w->requests = ebpfMonTheRequests = ebpfMonRequestsNew(first);
    w->recordTables = ebpfMonRecordTablesNew(targets, &kernel);
    if (w->recordTables)
        w->governor = ebpfMonGovernorNew(targets, w->recordTables, &w->costs);
    if (w->requests && w->governor)
        w->follower = ebpfMonFollowerNew(targets, w->requests, w->recordTables, w->governor,
                                         m->settings.watchSelf, &sink);
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
