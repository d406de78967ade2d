/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernelLoad.c made, for the other files of probe/ that use it. Private to probe/. */
#ifndef EBPFMON_KERNELLOADED_H
#define EBPFMON_KERNELLOADED_H

#include <sys/utsname.h>

#include "probe/mappedTable.h"
#include "probe/ring.h"
#include "probe/slotTables.h"
#include "ebpfMonBpf.skel.h"

/* One per process: see kernelLoad.h. ebpfMonKernelLoad and ebpfMonKernelUnload write it while no other thread uses it;
 * in between each member that changes has one thread that writes it. */
struct ebpfMonLoaded {
    struct ebpfMonBpf  *skel;  /* NULL: nothing is loaded. The scheduler's links in it: follower */
    ebpfMonRing         ring;     /* these two: event thread */
    int                 ringFile; /* 0: it is not open */
    ebpfMonTables       tables;
    ebpfMonMappedTable  conf, state, closure; /* they grow: follower */
    int                 grows;    /* some tables by key take memory for what is in them alone */
    struct utsname      kernel;
    int                 schedulerRefused; /* the kernel refused these tracepoints; it is not asked again. Follower */
};
extern struct ebpfMonLoaded ebpfMonLoaded;

int ebpfMonKernelOpenRing(size_t bytes); /* 0, or -1 with errno; then close it, too */
void ebpfMonKernelCloseRing(void);

#endif
