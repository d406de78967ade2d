/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which process opened each connection that is older than the monitor. This is read once, from /proc and sock_diag(7).
 * For later connections the kernel part notes the process when the connection is made.
 */
#ifndef EBPFMON_CONNECTIONOWNERS_H
#define EBPFMON_CONNECTIONOWNERS_H

#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonTable.h"

/* Notes who opened a connection: ebpfMonKernelSetOwner. */
typedef int (*ebpfMonConnectionOwnersSet)(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);

/* Calls "set" for each connection in the network namespace of process "pid" (0: ours) whose owner is found. "netns":
 * inode of that namespace. Takes as long as a look at all files of all processes, so no lock may be held. */
void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns, ebpfMonConnectionOwnersSet set);

#endif
