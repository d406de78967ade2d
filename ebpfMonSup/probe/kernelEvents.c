/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include <bpf/libbpf.h>

#include "probe/kernelEvents.h"
#include "probe/kernelLoaded.h"

/* The longest event is a chain with its records, or a put with its old and its new value. The room is twice what they
 * use (bpf/common/maps.bpf.h). */
#define LONGEST (sizeof(struct ebpfMonChainEvent) + sizeof(struct ebpfMonPutEvent) + 4 * EBPFMON_VAL_MAX)

typedef struct {
    ebpfMonEventFn event;
    void          *arg;
} receiver;

int ebpfMonKernelOpenRing(size_t bytes)
{
    const struct ebpfMonBpf *skel = ebpfMonLoaded.skel;

    if (ebpfMonRingOpen(&ebpfMonLoaded.ring, bpf_map__fd(skel->maps.ring), bytes, LONGEST,
                        &skel->data_sleeps->eventsSleep))
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

/* The others are not counted against the share of an IOC (sendHead, bpf/host/host.bpf.c). */
static int isOfIoc(uint32_t kind)
{
    return kind != EBPFMON_EV_EXEC && kind != EBPFMON_EV_EXIT && kind != EBPFMON_EV_LISTEN;
}

static void takeEvent(void *arg, const void *data, size_t size)
{
    const receiver *to = arg;
    const struct ebpfMonHead *head = data;

    if (size < sizeof(*head))
        return;
    if (isOfIoc(head->kind))
        ebpfMonLoaded.skel->bss->shares[ebpfMonShareOf(head->iocId)].read += ebpfMonShareSize(size);
    to->event(to->arg, head, size);
}

unsigned ebpfMonKernelReadEvents(ebpfMonEventFn event, void *arg, int *isWhole)
{
    receiver to = { event, arg };

    ebpfMonRingsClear(ebpfMonLoaded.ringFile);
    return ebpfMonRingRead(&ebpfMonLoaded.ring, takeEvent, &to, isWhole);
}

int ebpfMonKernelEventsFile(void *none)
{
    return ebpfMonLoaded.ringFile;
}

int ebpfMonKernelEventsBeginSleep(void *none)
{
    return ebpfMonRingBeginSleep(&ebpfMonLoaded.ring, EBPFMON_RING_ALL);
}

void ebpfMonKernelEventsEndSleep(void *none)
{
    ebpfMonRingEndSleep(&ebpfMonLoaded.ring);
}

int ebpfMonKernelEventsAreAnnounced(void *none)
{
    return !__atomic_load_n(ebpfMonLoaded.ring.sleeps, __ATOMIC_SEQ_CST);
}

/* The flag is in memory that the kernel part shares; several threads use it. */
static int readSilentFlag(void)
{
    return __atomic_load_n(&ebpfMonLoaded.skel->bss->silent, __ATOMIC_SEQ_CST) != 0;
}

static void setSilentFlag(uint32_t flag)
{
    __atomic_store_n(&ebpfMonLoaded.skel->bss->silent, flag, __ATOMIC_SEQ_CST);
}

void ebpfMonKernelBeginSilence(void)
{
    setSilentFlag(1);
    __atomic_store_n(&ebpfMonLoaded.isSilent, 1, __ATOMIC_SEQ_CST); /* after the flag: else its end would seem to have
                                                                     * come */
}

int ebpfMonKernelIsSilent(void)
{
    return __atomic_load_n(&ebpfMonLoaded.isSilent, __ATOMIC_SEQ_CST) && readSilentFlag();
}

void ebpfMonKernelBreakSilence(void)
{
    if (readSilentFlag()) /* every probe reads it: no write without need */
        setSilentFlag(0);
}

int ebpfMonKernelTakeSilenceEnd(void)
{
    int was = 1;

    return !readSilentFlag() &&
           __atomic_compare_exchange_n(&ebpfMonLoaded.isSilent, &was, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
