/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that the kernel did not run. One at a tracepoint does not run while the same program runs on this CPU: on a
 * kernel that preempts programs (from 7.0 on all of x86) a thread that interrupts it does something that the program
 * does not see. The kernel counts that (recursion_misses, since 5.12). Programs of uprobes always run. Any thread.
 */
#ifndef EBPFMON_SKIPPEDRUNS_H
#define EBPFMON_SKIPPEDRUNS_H

#include <stdint.h>
#include <bpf/libbpf.h>

/* How often the kernel left out this program ("fd"), and all loaded programs of an object, since they were loaded. */
uint64_t ebpfMonSkippedRunsOf(int fd);
uint64_t ebpfMonSkippedRunsCount(const struct bpf_object *object);

#endif
