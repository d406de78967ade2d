/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernelLoad.c made, for the other files of probe/ that use it. Private to probe/. */
#ifndef EBPFMON_KERNELLOADED_H
#define EBPFMON_KERNELLOADED_H

#include <sys/utsname.h>

#include "probe/kernelEvents.h"
#include "probe/kernelLoad.h"
#include "probe/mappedTable.h"
#include "ebpfMonBpf.skel.h"

struct ring_buffer;

/* One per process: see kernelLoad.h. ebpfMonKernelLoad and ebpfMonKernelUnload write it while no other thread uses it;
 * in between each member that changes has one thread that writes it. */
struct ebpfMonLoaded {
    struct ebpfMonBpf  *skel;  /* NULL: nothing is loaded. The scheduler's links in it: follower */
    struct ring_buffer *ring;
    ebpfMonTables       tables;
    ebpfMonMappedTable  conf, state, closure; /* they grow: follower */
    struct utsname      kernel;
    int                 schedulerRefused; /* the kernel refused these tracepoints; it is not asked again. Follower */
    /* Where the events go that ebpfMonKernelReadEvents reads now. They stand here because libbpf takes the argument of
     * its callback when the ring is made. Event thread */
    ebpfMonEventFn      event;
    void               *eventArg;
};
extern struct ebpfMonLoaded ebpfMonLoaded;

struct ring_buffer *ebpfMonKernelOpenRing(void); /* NULL with errno */

#endif
