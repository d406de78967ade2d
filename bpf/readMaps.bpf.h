/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables of the kernel part that the programs of queries read, too. MAP: see maps.bpf.h. Queries are an object of
 * their own, which defines these tables once more; the user part connects them by name before it loads the object.
 */
#ifndef EBPFMON_READMAPS_BPF_H
#define EBPFMON_READMAPS_BPF_H

#include "core.bpf.h"
#include "thread.bpf.h"

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonTargetConf);
} targets SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct thread);
} threads SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, struct ebpfMonRecKey);
    __type(value, __u32);
} recIndex SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonRecState);
} recState SEC(".maps");

/* Who began an asynchronous processing, by slot. Valid if ebpfMonRecState.noted is EBPFMON_NOTED_CAUSE. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CAUSES_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonCauseEvent);
} causes SEC(".maps");

#endif
