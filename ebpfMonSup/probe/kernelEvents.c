/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probe/kernelEvents.h"
#include "probe/kernelLoaded.h"

static int takeEvent(void *ctx, void *data, size_t size)
{
    (void)ctx;
    if (size >= sizeof(struct ebpfMonHead))
        ebpfMonLoaded.event(ebpfMonLoaded.eventArg, data, size);
    return 0;
}

struct ring_buffer *ebpfMonKernelOpenRing(void)
{
    return ring_buffer__new(bpf_map__fd(ebpfMonLoaded.skel->maps.ring), takeEvent, NULL, NULL);
}

int ebpfMonKernelReadEvents(int ms, ebpfMonEventFn event, void *arg)
{
    int n;

    if (!ebpfMonLoaded.ring)
        return -1;
    ebpfMonLoaded.event = event;
    ebpfMonLoaded.eventArg = arg;
    n = ring_buffer__poll(ebpfMonLoaded.ring, ms);
    if (n < 0 && n != -EINTR)
        return -1;
    /* The kernel part wakes us for few events only: the others are taken here. */
    ring_buffer__consume(ebpfMonLoaded.ring);
    return n < 0 ? 0 : n;
}
