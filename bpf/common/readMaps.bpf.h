/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables of the kernel part that the programs of queries read, too. MAP: see maps.bpf.h. Queries are an object of
 * their own, which defines these tables once more; the user part connects them by name before it loads the object.
 */
#ifndef EBPFMON_READMAPS_BPF_H
#define EBPFMON_READMAPS_BPF_H

#include "common/core.bpf.h"
#include "common/thread.bpf.h"

MAP TABLE(targets, HASH, EBPFMON_TARGETS_MAX, __u32, struct ebpfMonTargetConf);

MAP TABLE(threads, HASH, EBPFMON_THREADS_MAX, __u32, struct thread);

MAP TABLE(recIndex, HASH, 1, struct ebpfMonRecKey, __u32);

/* A table that grows: an array of blocks of so many elements. The user part makes a block when it is needed, and maps
 * it (probe/mappedTable.h). findInBlocks() finds an element. The sizes stand here instead of the types, because
 * the compiler describes a struct that is only named here in part (BTF). */
#define BLOCKS_OF(element, number)                                               \
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                    \
    __uint(max_entries, 1);                                                      \
    __type(key, __u32);                                                          \
    __array(values, struct {                                                     \
        __uint(type, BPF_MAP_TYPE_ARRAY);                                        \
        __uint(map_flags, BPF_F_MMAPABLE);                                       \
        __uint(max_entries, number);                                             \
        __uint(key_size, sizeof(__u32));                                         \
        __uint(value_size, sizeof(element));                                     \
    })

MAP struct { BLOCKS_OF(struct ebpfMonRecState, EBPFMON_BLOCK); } recState SEC(".maps");

/* Who began an asynchronous processing, by slot. Valid if ebpfMonRecState.noted is EBPFMON_NOTED_CAUSE. */
MAP TABLE(causes, LRU_HASH, EBPFMON_CAUSES_MAX, __u32, struct ebpfMonCauseEvent);

/* Element "at" of a table of blocks of "number" elements. NULL: there is no such element. */
static __always_inline void *findInBlocks(void *table, __u32 at, __u32 number)
{
    __u32 key = at / number;
    void *block = bpf_map_lookup_elem(table, &key);

    if (!block)
        return 0;
    key = at % number;
    return bpf_map_lookup_elem(block, &key);
}

/* NULL: no IOC has this slot. */
static __always_inline struct ebpfMonRecState *findState(__u32 slot)
{
    return findInBlocks(&recState, slot, EBPFMON_BLOCK);
}

#endif
