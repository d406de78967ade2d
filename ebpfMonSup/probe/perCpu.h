/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters that the kernel part keeps for each CPU. */
#ifndef EBPFMON_PERCPU_H
#define EBPFMON_PERCPU_H

#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_map;

/* Adds up an entry of a per-CPU table over all CPUs. Its value, and "sum", are "size" bytes of 64-bit counters; "key"
 * is the address of the entry's key. All 0 if there is no entry, or no memory. */
void ebpfMonPerCpuSum(const struct bpf_map *map, const void *key, void *sum, size_t size);

/* --- programs that the kernel did not run ---
 *
 * Programs that the kernel did not run. One at a tracepoint does not run while the same program runs on this CPU: on a
 * kernel that preempts programs (from 7.0 on all of x86) a thread that interrupts it does something that the program
 * does not see. The kernel counts that (recursion_misses, since 5.12). Programs of uprobes always run. Any thread.
 */

/* How often the kernel left out this program ("fd"), and all loaded programs of an object, since they were loaded. */
uint64_t ebpfMonSkippedRunsOf(int fd);
uint64_t ebpfMonSkippedRunsCount(const struct bpf_object *object);

#endif
