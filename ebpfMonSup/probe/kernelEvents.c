/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probe/kernelEvents.h"
#include "probe/kernelLoad.h"
#include "probe/kernelLoaded.h"

/* The longest event is a chain with its records, or a put with its old and its new value. The room is twice what they
 * use (bpf/maps.bpf.h). */
#define LONGEST (sizeof(struct ebpfMonChainEvent) + sizeof(struct ebpfMonPutEvent) + 4 * EBPFMON_VAL_MAX)

typedef struct {
    ebpfMonEventFn event;
    void          *arg;
} receiver;

int ebpfMonKernelOpenRing(size_t bytes)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    if (ebpfMonRingOpen(&ebpfMonLoaded.ring, bpf_map__fd(skel->maps.ring), bytes, LONGEST, &skel->bss->ringSleeps))
        return -1;
    ebpfMonLoaded.ringFile = ebpfMonRingsNew();
    return ebpfMonLoaded.ringFile < 0 ? -1 : ebpfMonRingsAdd(ebpfMonLoaded.ringFile, &ebpfMonLoaded.ring);
}

void ebpfMonKernelCloseRing(void)
{
    if (ebpfMonLoaded.ringFile > 0)
        close(ebpfMonLoaded.ringFile);
    ebpfMonRingClose(&ebpfMonLoaded.ring);
}

static void takeEvent(void *arg, const void *data, size_t size)
{
    const receiver *to = arg;
    const struct ebpfMonHead *head = data;

    if (size < sizeof(*head))
        return;
    if (head->kind != EBPFMON_EV_EXEC && head->kind != EBPFMON_EV_EXIT) /* these events are not counted against the
                                                                         * share of an IOC (sendHead, bpf/host.bpf.c) */
        ebpfMonLoaded.skel->bss->shares[ebpfMonShareOf(head->iocId)].read += ebpfMonShareSize(size);
    to->event(to->arg, head, size);
}

unsigned ebpfMonKernelReadEvents(ebpfMonEventFn event, void *arg, int *isWhole)
{
    receiver to = { event, arg };

    ebpfMonRingsClear(ebpfMonLoaded.ringFile);
    return ebpfMonRingRead(&ebpfMonLoaded.ring, takeEvent, &to, isWhole);
}

int ebpfMonKernelEventsFile(void)
{
    return ebpfMonLoaded.ringFile;
}

int ebpfMonKernelEventsBeginSleep(void)
{
    return ebpfMonRingBeginSleep(&ebpfMonLoaded.ring);
}

void ebpfMonKernelEventsEndSleep(void)
{
    ebpfMonRingEndSleep(&ebpfMonLoaded.ring);
}
