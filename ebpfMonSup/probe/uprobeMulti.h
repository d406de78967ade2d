/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uprobe_multi links (kernel 6.6, 89ae89f53d20): many sites of one file for one process in one link, which
 * goes at once when it is closed. Made by the system call itself, for libbpf knows them only
 * from 1.3 on and Debian 12 has 1.1.
 */
#ifndef EBPFMON_UPROBEMULTI_H
#define EBPFMON_UPROBEMULTI_H

#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_ATTACH_MULTI 48 /* BPF_TRACE_UPROBE_MULTI of linux/bpf.h */

/* Whether this kernel has them, with a filter by process that works: this function tries it. */
int ebpfMonUprobeMultiIsSupported(void);

/* A file descriptor that the caller closes, or -1 (errno). "offsets": in the file. "semaphores" (may be NULL): where in the file
 * the kernel counts that a place is looked at, 0: nowhere. */
int ebpfMonUprobeMultiAttach(int progFd, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
                             unsigned count, pid_t pid, int isReturn);

#endif
