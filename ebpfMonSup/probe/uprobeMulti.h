/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uprobe_multi links (kernel 6.6, 89ae89f53d20): one link has many sites of one file in one process, and all are
 * removed at once when it is closed. We make the system call ourselves, because libbpf has it only since 1.3, and
 * Debian 12 has 1.1.
 */
#ifndef EBPFMON_UPROBEMULTI_H
#define EBPFMON_UPROBEMULTI_H

#include <stdint.h>
#include <sys/types.h>

#define EBPFMON_ATTACH_MULTI 48 /* BPF_TRACE_UPROBE_MULTI of linux/bpf.h */

/* Nonzero: this kernel has them, and can select one process. Tries it. Any thread. */
int ebpfMonUprobeMultiIsSupported(void);

/* Loads a program that does nothing, for tries. Returns its file descriptor, which the caller closes; or -1 with errno:
 * this kernel has no such links. */
int ebpfMonUprobeMultiLoadEmpty(void);

/* Returns a file descriptor, which the caller closes; or -1 with errno. "offsets": bytes in the file, "count" of them.
 * "semaphores" (may be NULL): for each site the byte in the file where the kernel counts who probes it; 0: none.
 * "cookies": for each site what bpf_get_attach_cookie() of the program returns; NULL: 0. */
int ebpfMonUprobeMultiAttach(int progFd, const char *path, const uint64_t *offsets, const uint64_t *semaphores,
                             const uint64_t *cookies, unsigned count, pid_t pid, int isReturn);

#endif
