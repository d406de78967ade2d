/* SPDX-License-Identifier: BSD-3-Clause */
/* How many bytes the TCP connections of a network namespace have carried, as the kernel counts them. Any thread. */
#ifndef EBPFMON_TCPBYTES_H
#define EBPFMON_TCPBYTES_H

#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonEvent.h"

typedef struct {
    uint32_t local, remote; /* network byte order, the ports too */
    uint16_t localPort, remotePort;
    uint64_t sent;          /* and acknowledged by the other end; since the connection was made */
    uint64_t received;
} ebpfMonTcpBytes;

/* Calls "each" for the established IPv4 connections in the network namespace of process "pid", as sock_diag(7) lists
 * them. 0; -1: this kernel does not support it, we may not enter, or the kernel did not answer within a second. */
int ebpfMonTcpBytesRead(pid_t pid, void (*each)(void *arg, const ebpfMonTcpBytes *bytes), void *arg);

/* What the server's socket of this connection has received, in the network namespace of process "pid". 1: bytes; or
 * UINT64_MAX if the kernel does not tell them any more (TIME_WAIT). 0: there is no such socket. -1: we cannot ask. */
int ebpfMonTcpBytesFindReceived(pid_t pid, const struct ebpfMonPeer *peer, uint64_t *received);

#endif
