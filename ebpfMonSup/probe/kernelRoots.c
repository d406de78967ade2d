/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <bpf/bpf.h>

#include <epicsAtomic.h>

#include "common/clock.h"
#include "probe/kernelLoaded.h"
#include "probe/kernelRoots.h"

#define SPARE  4096u /* room for roots that nobody expects, within a second */
#define RETRY_NS EBPFMON_SECOND_NS /* so soon the kernel is asked for memory again */

int ebpfMonKernelOpenRoots(unsigned most)
{
    ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;

    roots->most = most;
    roots->stat = ebpfMonBlockTableOpen(&roots->table, ebpfMonLoaded.skel->maps.roots, sizeof(struct ebpfMonRootStat),
                                        EBPFMON_ROOT_BLOCK, most);
    return roots->stat ? 0 : -1;
}

static void freeNumber(uint32_t number)
{
    bpf_map_update_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.freeRoots), NULL, &number, BPF_ANY);
}

/* 0, or -1: the kernel gives no memory. */
static int addBlock(ebpfMonLoadedRoots *roots)
{
    uint32_t from = (uint32_t)roots->made, left = roots->most - from;
    uint32_t count = left < EBPFMON_ROOT_BLOCK ? left : EBPFMON_ROOT_BLOCK;

    if (roots->refusedAt && ebpfMonClockMonotonic() - roots->refusedAt < RETRY_NS)
        return -1;
    if (ebpfMonBlockTableUse(&roots->table, from + count)) {
        roots->refusedAt = ebpfMonClockMonotonic();
        return -1;
    }
    epicsAtomicSetSizeT(&roots->made, from + count);
    for (uint32_t i = 1; i <= count; i++)
        freeNumber(from + i);
    return 0;
}

static void addUsed(uint32_t more)
{
    __atomic_fetch_add(&ebpfMonLoaded.skel->bss->rootsUsed, more, __ATOMIC_RELAXED);
}

uint32_t ebpfMonKernelCountRoots(void)
{
    return __atomic_load_n(&ebpfMonLoaded.skel->bss->rootsUsed, __ATOMIC_RELAXED);
}

void ebpfMonKernelReserveRoots(void)
{
    ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;
    size_t need = (size_t)ebpfMonKernelCountRoots() + SPARE;

    while (roots->made < need && roots->made < roots->most && addBlock(roots) == 0)
        ;
}

uint32_t ebpfMonKernelTakeRoot(uint32_t slot)
{
    uint32_t number;

    ebpfMonKernelReserveRoots();
    if (bpf_map_lookup_and_delete_elem(bpf_map__fd(ebpfMonLoaded.skel->maps.freeRoots), NULL, &number))
        return 0;
    addUsed(1);
    __atomic_store_n(&((struct ebpfMonRootStat *)&ebpfMonLoaded.roots.stat[number - 1])->owner, (uint64_t)slot + 1,
                     __ATOMIC_RELEASE); /* after the count: ebpfMonKernelEachRoot */
    return number;
}

void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count)
{
    const ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;

    for (uint32_t i = 0; i < roots->made; i++) {
        struct ebpfMonRootStat *stat = (struct ebpfMonRootStat *)&roots->stat[i];
        uint64_t owner = stat->owner;

        if (!owner || owner - 1 < first || owner - 1 - first >= count)
            continue;
        memset(stat, 0, sizeof(*stat));
        freeNumber(i + 1);
        addUsed((uint32_t)-1);
    }
}

void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg)
{
    const ebpfMonLoadedRoots *roots = &ebpfMonLoaded.roots;
    size_t made = epicsAtomicGetSizeT(&roots->made);
    uint32_t owned = 0, most = 0;

    /* The numbers are given in sequence, so most roots without an owner are behind the others, and each would be a miss
     * of the caches. A root counts as used before it has its owner. Meanwhile the follower may remove some: then more
     * are looked at than needed. */
    for (size_t i = 0; i < made; i++) {
        uint32_t used = ebpfMonKernelCountRoots();
        struct ebpfMonRootStat copy;

        most = used > most ? used : most;
        if (owned == most)
            break;
        owned += __atomic_load_n(&roots->stat[i].owner, __ATOMIC_ACQUIRE) != 0; /* before the count is read again */
        if (!roots->stat[i].chains)
            continue;
        memcpy(&copy, (const void *)&roots->stat[i], sizeof(copy));
        if (copy.owner && copy.owner == roots->stat[i].owner) /* else the follower clears it */
            each(arg, (uint32_t)copy.owner - 1, &copy);
    }
}
