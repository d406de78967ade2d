/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP sockets of a network namespace as the kernel lists them by sock_diag(7). /proc/net/tcp has the same list. But each
 * time it is read, the kernel walks through the connections of all namespaces of the host (tcp_seq_next), which takes
 * milliseconds. A request for listening sockets by sock_diag walks only through these (inet_diag_dump_icsk).
 */
#ifndef EBPFMON_TCPDIAG_H
#define EBPFMON_TCPDIAG_H

#include "host/procTcp.h"

/* The sockets in one of "states" (bits: 1 << ebpfMonTcpListen) in the network namespace of process "pid"; 0: our own.
 * Returns their number; -1: this kernel does not answer, we may not enter, or no memory. *rows is malloc'ed for the caller.
 */
int ebpfMonTcpDiagRead(pid_t pid, unsigned states, ebpfMonTcpRow **rows);

#endif
