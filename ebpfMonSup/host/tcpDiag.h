/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP sockets of a network namespace as the kernel lists them by sock_diag(7). /proc/net/tcp has the same list. But
 * each time it is read, the kernel walks through the connections of all namespaces of the host (tcp_seq_next), which
 * takes milliseconds. A request for listening sockets by sock_diag walks only through these (inet_diag_dump_icsk).
 */
#ifndef EBPFMON_TCPDIAG_H
#define EBPFMON_TCPDIAG_H

#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonEvent.h"

enum { ebpfMonTcpEstablished = 1, ebpfMonTcpListen = 10 }; /* include/net/tcp_states.h */

typedef struct {
    unsigned state;
    int      v4;              /* both addresses are IPv4, mapped into IPv6, or :: (0, as 0.0.0.0) */
    int      v6;              /* both addresses are IPv6, or :: (0) */
    uint32_t local, remote;   /* network byte order, ports too; those of v4 */
    uint32_t local6[4], remote6[4]; /* … and of v6 */
    uint16_t localPort, remotePort;
    uid_t    uid;
    unsigned long inode;
} ebpfMonTcpRow;

#define EBPFMON_TCP_STATE(state) (1u << (state)) /* of a set of states */

/* The sockets in one of "states" (bits: 1 << ebpfMonTcpListen) in the network namespace of process "pid"; 0: our own.
 * Returns their number; -1: this kernel does not answer, we may not enter, or no memory. *rows is malloc'ed for the
 * caller.
 */
int ebpfMonTcpDiagRead(pid_t pid, unsigned states, ebpfMonTcpRow **rows);

/* How many bytes the server's socket of this connection has received that its process has not read, in the network
 * namespace of process "pid". A FIN counts as one. -1: there is no such socket (any more), or we cannot ask. */
long ebpfMonTcpDiagReadQueue(pid_t pid, const struct ebpfMonPeer *peer);

#endif
