/* SPDX-License-Identifier: BSD-3-Clause */
/* What a system call, or a socket of the kernel, refers to, as people read it. */
#ifndef EBPFMON_QUERYFILETEXT_H
#define EBPFMON_QUERYFILETEXT_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonQuery.h"

/* Which system calls have a descriptor as their first argument: a bit for each number. */
void ebpfMonQueryFindFileCalls(uint64_t bits[EBPFMON_QUERY_SYSCALLS / 64]);

/* The whole path of a file that the process has open still, else its name alone; the peer of a connection, as ADDRESS:PORT, or
 * "PORT to ADDRESS:PORT" with the own port; "port PORT" of a socket that has no peer; "socket" of others; "-": nothing. */
void ebpfMonQueryFileText(const struct ebpfMonQueryFile *file, char *text, size_t size);

#endif
