/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the groups of the published values that have changed since the last second: only their PVs need to process. A
 * group that has not changed keeps its time, so the time tells since when its values are true. Publishing thread only.
 */
#ifndef EBPFMON_GROUPCHANGES_H
#define EBPFMON_GROUPCHANGES_H

#include "model/published.h"

/* Begin with all 0: no group is known yet. */
typedef struct {
    struct {
        int      isKnown;
        uint64_t hash;
        epicsTimeStamp time;
    } group[ebpfMonGroupCount];
} ebpfMonGroupChanges;

/* Nonzero: the publishing thread writes this group, and its values have changed since the last call. Other groups have
 * other writers, which notify each change themselves. Under the lock of the published values. */
int ebpfMonGroupChangesFind(ebpfMonGroupChanges *changes, ebpfMonPublished *published, ebpfMonGroup group);

#endif
