/* SPDX-License-Identifier: BSD-3-Clause */
/* The TCP sockets of a network namespace and of a process: which there are, and how much they have carried. */
#ifndef EBPFMON_TCPSOCKETS_H
#define EBPFMON_TCPSOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonEvent.h"

/* --- addresses as text ---
 *
 * Texts of the addresses of struct ebpfMonPeer. Any thread. */

#define EBPFMON_PEERTEXT_SIZE 46 /* INET6_ADDRSTRLEN */

/* "10.0.0.1" or "fd00::1". An address that is not known: "not known" (EBPFMON_NOT_KNOWN, model/put.h). */
void ebpfMonPeerTextAddress(uint32_t addr, const uint32_t addr6[4], char *buf, size_t size);

/* "10.0.0.1:5064" or "[fd00::1]:5075". "port": network byte order. */
void ebpfMonPeerTextEnd(uint32_t addr, const uint32_t addr6[4], uint16_t port, char *buf, size_t size);

/* --- sock_diag ---
 *
 * Asks the kernel for the TCP sockets of a network namespace, by sock_diag(7); private to host/. Any thread.
 */

struct inet_diag_msg;
struct inet_diag_sockid;

typedef struct {
    uint8_t  family;     /* AF_INET, AF_INET6; AF_UNSPEC: both */
    uint8_t  extensions; /* INET_DIAG_…, a bit each */
    unsigned states;     /* ebpfMonTcp… below, a bit each */
} ebpfMonSockDiagRequest;

/* A socket: "bytes" of it, with its extensions behind it. 0, or -1: ends the reading. */
typedef int (*ebpfMonSockDiagEach)(void *arg, const struct inet_diag_msg *socket, size_t bytes);

/* Opens the namespace of process "pid"; 0: our own. The kernel has so much time for each part of an answer; it takes
 * microseconds. A file for the caller to close, or -1: this kernel does not support it, or we may not enter. */
int ebpfMonSockDiagOpen(pid_t pid, double seconds);

/* 0, or -1: the kernel did not answer, there were too many parts, or "each" ended it. */
int ebpfMonSockDiagRead(int file, const ebpfMonSockDiagRequest *request, ebpfMonSockDiagEach each, void *arg);

/* The socket of this connection, in the namespace of process "pid" (0: our own), at the end that is the server's in
 * *peer. Nonzero: *socket is set. 0: there is none, or no answer came. */
int ebpfMonSockDiagFind(int file, pid_t pid, const struct ebpfMonPeer *peer, struct inet_diag_msg *socket);

/* --- sockets as the kernel lists them ---
 *
 * The TCP sockets of a network namespace as the kernel lists them by sock_diag(7). /proc/net/tcp has the same list. But
 * each time it is read, the kernel walks through the connections of all namespaces of the host (tcp_seq_next), which
 * takes milliseconds. A request for listening sockets by sock_diag walks only through these (inet_diag_dump_icsk).
 */

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

/* The device with this IPv6 address in the network namespace of process "pid"; 0: there is none. */
unsigned ebpfMonTcpFindDevice(pid_t pid, const uint32_t addr6[4]);

/* How many bytes the server's socket of this connection has received that its process has not read, in the network
 * namespace of process "pid". A FIN counts as one. -1: there is no such socket (any more), or we cannot ask. */
long ebpfMonTcpDiagReadQueue(pid_t pid, const struct ebpfMonPeer *peer);

/* --- bytes ---
 *
 * What the TCP connections of a network namespace have carried and still have to carry, as the kernel counts it. Any
 * thread.
 */

typedef struct {
    uint32_t local, remote; /* network byte order, the ports too; these six as in struct ebpfMonPeer */
    uint32_t local6[4], remote6[4];
    uint16_t localPort, remotePort;
    uint64_t sent;          /* and acknowledged by the other end; since the connection was made */
    uint64_t received;
    uint32_t unread;        /* bytes that came and that the process at this end has not read */
    uint32_t waiting;       /* bytes that this process has sent and the other end has not acknowledged; … */
    uint32_t notSent;       /* … of these, what is not even on the way */
    uint32_t inFlight;      /* packets on the way; 0 while "notSent" waits: the other end has no room */
    uint32_t sentAgo, ackAgo; /* ms since data were sent, and since an acknowledgement came */
    unsigned retransmits;   /* of the oldest packet, or of the question whether there is room */
} ebpfMonTcpBytes;

/* Calls "each" for the established connections in the network namespace of process "pid", as sock_diag(7) lists
 * them. 0; -1: this kernel does not support it, we may not enter, or the kernel did not answer within a second. */
int ebpfMonTcpBytesRead(pid_t pid, void (*each)(void *arg, const ebpfMonTcpBytes *bytes), void *arg);

/* What the server's socket of this connection has received, in the network namespace of process "pid". 1: bytes; or
 * UINT64_MAX if the kernel does not tell them any more (TIME_WAIT). 0: there is no such socket. -1: we cannot ask. */
int ebpfMonTcpBytesFindReceived(pid_t pid, const struct ebpfMonPeer *peer, uint64_t *received);

/* --- sockets of a process ---
 *
 * The TCP sockets of a network namespace, and those of a process. The kernel names a socket by inode, and the links in
 * /proc/PID/fd ("socket:[INODE]") say who has it (proc(5)).
 */

/* Calls "each" for the sockets that are in one of "states", in the network namespace of process "pid" (0: our own),
 * until "each" returns nonzero. Returns this value, or 0. Asks the kernel by sock_diag(7); if the kernel
 * does not answer, reads the tables of /proc. A missing table counts as empty. */
int ebpfMonTcpRows(pid_t pid, unsigned states, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg);

/* The same for all UDP sockets, of which "local", "localPort" and "inode" are set. Reads the tables of /proc. */
int ebpfMonUdpRows(pid_t pid, int (*each)(void *arg, const ebpfMonTcpRow *row), void *arg);

/* Calls "each" for the sockets that the process has open: the number of the file, and the inode. 0, or -1 when the
 * process is gone. */
int ebpfMonTcpOwned(pid_t pid, void (*each)(void *arg, unsigned file, unsigned long inode), void *arg);

/* Nonzero: the process has this socket at this number of its files. Takes a microsecond. */
int ebpfMonTcpHasSocket(pid_t pid, unsigned file, unsigned long inode);

#endif
