/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which groups of the published values are others than a second ago: only their records need to process. A group that is
 * the same keeps its time, which is the time at which its values became true. Publishing thread only.
 */
#ifndef EBPFMON_GROUPCHANGES_H
#define EBPFMON_GROUPCHANGES_H

#include "model/published.h"

/* All 0: no group is known yet. */
typedef struct {
    struct {
        int      isKnown;
        uint64_t hash;
        epicsTimeStamp time;
    } group[ebpfMonGroupCount];
} ebpfMonGroupChanges;

/* Nonzero: the publishing thread writes this group, and its values are others than at the last call. The values of all
 * other groups have writers that tell of each change. Under the lock of the published values. */
int ebpfMonGroupChangesFind(ebpfMonGroupChanges *changes, ebpfMonPublished *published, ebpfMonGroup group);

#endif
