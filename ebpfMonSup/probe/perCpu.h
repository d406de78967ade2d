/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters that the kernel part keeps for each CPU. */
#ifndef EBPFMON_PERCPU_H
#define EBPFMON_PERCPU_H

#include <stddef.h>
#include <stdint.h>

struct bpf_map;

/* Adds up an entry of a per-CPU table over all CPUs. Its value, and "sum", are "size" bytes of 64-bit counters; "key"
 * is the address of the entry's key. All 0 if there is no entry, or no memory. */
void ebpfMonPerCpuSum(const struct bpf_map *map, const void *key, void *sum, size_t size);

#endif
