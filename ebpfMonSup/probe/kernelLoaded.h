/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernelLoad.c made, for the other files of probe/ that use it. Private to probe/. */
#ifndef EBPFMON_KERNELLOADED_H
#define EBPFMON_KERNELLOADED_H

#include "probe/kernelLoad.h"
#include "ebpfMonBpf.skel.h"

struct ring_buffer;

/* Written by ebpfMonKernelLoad and ebpfMonKernelUnload alone, while no other thread uses it. The links of the
 * scheduler's tracepoints in "skel": by the follower alone. */
struct ebpfMonLoaded {
    struct ebpfMonBpf  *skel;  /* NULL: nothing is loaded */
    struct ring_buffer *ring;
    ebpfMonTables       tables;
};
extern struct ebpfMonLoaded ebpfMonLoaded;

struct ring_buffer *ebpfMonKernelOpenRing(void); /* NULL with errno */

#endif
