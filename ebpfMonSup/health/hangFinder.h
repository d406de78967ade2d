/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the threads that hang: a thread hangs that holds a lock set, or is in one callback, for ebpfMonHangLimit or
 * longer. Publishing thread only. */
#ifndef EBPFMON_HANGFINDER_H
#define EBPFMON_HANGFINDER_H

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "health/hangSources.h"
#include "watch/target.h"

/* An element of the kernel part's thread table. */
typedef struct {
    uint32_t tid;
    uint64_t doubt; /* ns; held[0].begin may be so much too late (passRecords.h) */
    struct ebpfMonThread seen;
} ebpfMonSeenThread;

typedef struct ebpfMonHangFinder ebpfMonHangFinder;

/* "targets" and "sources" stay the caller's. NULL without memory. */
ebpfMonHangFinder *ebpfMonHangFinderNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources);
void ebpfMonHangFinderFree(ebpfMonHangFinder *finder);

/* "now": monotonic ns. Returns the number of hangs in "found"; sets health->hangLine to their stacks. The caller
 * holds no lock: this function takes the targets lock to look up names, and reads stacks without it. */
unsigned ebpfMonHangFinderFind(ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                               uint64_t now, ebpfMonHang found[EBPFMON_HANGS_MAX], ebpfMonHealth *health);

/* If a turn began or ended during the pass of a scan thread, its entry still has the root of the last chain that was
 * timed. That chain has ended: removes the root. "turn": the IOC's now (struct ebpfMonTargetConf). */
void ebpfMonHangFinderForgetOldRoot(struct ebpfMonThread *seen, uint32_t turn);

/* The time (s) after which a thread hangs; 0: hangs are not looked for. One per process, because it is a variable of
 * iocsh. */
extern double ebpfMonHangLimit;

#endif
