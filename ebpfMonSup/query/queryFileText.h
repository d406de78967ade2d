/* SPDX-License-Identifier: BSD-3-Clause */
/* What a system call, or a socket of the kernel, refers to, as people read it. */
#ifndef EBPFMON_QUERYFILETEXT_H
#define EBPFMON_QUERYFILETEXT_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonQuery.h"

/* Sets a bit for the number of each system call whose first argument is a descriptor. */
void ebpfMonQueryFindFileCalls(uint64_t bits[EBPFMON_QUERY_SYSCALLS / 64]);

/* For a file that the process still has open: its whole path; if it was closed: its name only. For a connection: its peer as
 * ADDRESS:PORT, or "PORT to ADDRESS:PORT" with the own port; for a socket without a peer "port PORT"; for other sockets
 * "socket"; for nothing "-". */
void ebpfMonQueryFileText(const struct ebpfMonQueryFile *file, char *text, size_t size);

#endif
