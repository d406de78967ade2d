/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls a function, or opens a socket, in the network namespace of another process. */
#ifndef EBPFMON_NETNSSOCKET_H
#define EBPFMON_NETNSSOCKET_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Calls "call" in the network namespace that process "pid" lives in; 0: in our own. "netns": gets the inode of that
 * namespace, if it is not NULL. Returns what "call" returned; -1 with errno: the process is gone, or we may not enter
 * (CAP_SYS_ADMIN, CAP_SYS_PTRACE). The calling thread is in the other namespace for a moment. If it cannot come back,
 * the thread is suspended, because everything that it did from then on would happen in the wrong network.
 */
int ebpfMonNetnsCall(pid_t pid, int (*call)(void *arg), void *arg, uint32_t *netns);

/* As socket(2), there. */
int ebpfMonNetnsSocketOpen(pid_t pid, int domain, int type, int protocol, uint32_t *netns);

#endif
