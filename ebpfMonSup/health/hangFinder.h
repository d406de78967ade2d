/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads hang: those that hold a lock set, or are in one callback, for longer than ebpfMonHangLimit. Publishing
 * thread only. */
#ifndef EBPFMON_HANGFINDER_H
#define EBPFMON_HANGFINDER_H

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "health/hangSources.h"
#include "watch/target.h"

/* An element of the kernel part's thread table. */
typedef struct {
    uint32_t tid;
    struct ebpfMonThread seen;
} ebpfMonSeenThread;

typedef struct ebpfMonHangFinder ebpfMonHangFinder;

/* "targets" and "sources" stay the caller's. NULL without memory. */
ebpfMonHangFinder *ebpfMonHangFinderNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources);
void ebpfMonHangFinderFree(ebpfMonHangFinder *finder);

/* "now": monotonic ns. Returns how many hang; health->hangLine gets their stacks. Takes the targets lock for names
 * only: call it without. */
unsigned ebpfMonHangFinderFind(ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                               uint64_t now, ebpfMonHang found[EBPFMON_HANGS_MAX], ebpfMonHealth *health);

/* A thread that holds a lock set, or is in one callback, for this long (s) hangs; 0: none does. One per process,
 * because it is a variable of iocsh. */
extern double ebpfMonHangLimit;

#endif
