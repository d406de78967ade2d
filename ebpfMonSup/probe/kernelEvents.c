/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probe/kernelEvents.h"
#include "probe/kernelLoaded.h"

/* Where the events of the ebpfMonKernelReadEvents under way go. libbpf takes its argument when the ring is made, so they
 * stand here; there is one ring, and one thread reads it. */
static ebpfMonEventFn onEvent;
static void *onEventArg;

static int takeEvent(void *ctx, void *data, size_t size)
{
    (void)ctx;
    if (size >= sizeof(struct ebpfMonHead) && onEvent)
        onEvent(onEventArg, data, size);
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
    onEvent = event;
    onEventArg = arg;
    n = ring_buffer__poll(ebpfMonLoaded.ring, ms);
    if (n < 0 && n != -EINTR)
        return -1;
    /* The kernel part wakes us for few events only: the others are taken here. */
    ring_buffer__consume(ebpfMonLoaded.ring);
    return n < 0 ? 0 : n;
}
