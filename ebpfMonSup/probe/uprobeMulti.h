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

/* Places in one file that a process has mapped. All pointers stay the caller's. */
typedef struct {
    const char *path;
    const uint64_t *offset;    /* in the file */
    const uint64_t *semaphore; /* for each place: the byte in the file where the kernel counts who probes it; 0:
                                * there is none. NULL: no place has one */
    unsigned count;
    pid_t    pid;
    uint64_t cookie;           /* that the program gets at each place (bpf_get_attach_cookie), with uprobe_multi */
} ebpfMonUprobePlaces;

/* Nonzero: this kernel has them, and can select one process. Tries it. Any thread. */
int ebpfMonUprobeMultiIsSupported(void);

/* Loads a program that does nothing, for tries. Returns its file descriptor, which the caller closes; or -1 with errno:
 * this kernel has no such links. */
int ebpfMonUprobeMultiLoadEmpty(void);

/* One link for all places. Returns its file descriptor, which the caller closes; or -1 with errno. */
int ebpfMonUprobeMultiAttach(int progFd, const ebpfMonUprobePlaces *places, int isReturn);

#endif
