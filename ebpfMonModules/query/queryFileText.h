/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes as text the file or socket of a system call, or of a tracepoint with a socket. No state; any thread. */
#ifndef EBPFMON_QUERYFILETEXT_H
#define EBPFMON_QUERYFILETEXT_H

#include <stddef.h>
#include <stdint.h>

#include "shared/ebpfMonQuery.h"

/* Sets a bit for the number of each system call with a descriptor as first argument. */
void ebpfMonQueryFindFileCalls(uint64_t bits[EBPFMON_QUERY_SYSCALLS / 64]);

/*
 * Writes:
 * - a file that the process still has open: its whole path, or its end if it is long
 * - a file that was closed: its name only
 * - a connection: the peer as ADDRESS:PORT, or "PORT to ADDRESS:PORT" if our own port is known
 * - a socket without a peer: "port PORT"
 * - any other socket: "socket"
 * - no file: "-"
 *
 * Reads /proc of the process, for the path.
 */
void ebpfMonQueryFileText(const struct ebpfMonQueryFile *file, char *text, size_t size);

#endif
