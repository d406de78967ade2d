/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that were open before us: whose they are is read once from /proc. Later ones tell themselves as they are
 * made. */
#ifndef EBPFMON_CONNECTIONOWNERS_H
#define EBPFMON_CONNECTIONOWNERS_H

#include <stdint.h>
#include <sys/types.h>

/* Those of the network namespace (inode) of a process; 0: ours. Takes as long as a look at all files of all processes. */
void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns);

#endif
