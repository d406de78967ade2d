/* SPDX-License-Identifier: BSD-3-Clause */
/* What the file is for which a thread waits in a system call: the peer of a socket or a pipe, or a path and who serves
 * it. By /proc alone: nothing here asks the file itself, which may not answer. No state; any thread. */
#ifndef EBPFMON_WAITFILES_H
#define EBPFMON_WAITFILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "call": name of the system call; "arg": its arguments. Nonzero: it is one that waits for a file, and "text" gets its
 * name: "10.1.2.3:502", "a pipe of cat (pid 7)", "/mnt/x (fuse.sshfs host:/x, served by sshfs (pid 8))". */
int ebpfMonWaitFileName(pid_t pid, const char *call, const uint64_t *arg, char *text, size_t size);

#endif
