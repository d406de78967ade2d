/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of this host listens at which address and port. No state. These functions read /proc, so the caller
 * holds no lock of the event path. */
#ifndef EBPFMON_SERVERSOCKETS_H
#define EBPFMON_SERVERSOCKETS_H

#include "ebpfMonEvent.h"
#include <sys/types.h>

typedef struct {
    pid_t    pid;
    uint32_t netns;
    uint32_t addr;   /* network byte order, the port too; 0: any */
    uint16_t port;
} ebpfMonServerSocket;

/* Nonzero: a connection with this server came in through the socket. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *socket, const struct ebpfMonPeer *peer);

/* The sockets on which these processes listen for IPv4 clients, at most "max". Returns their number; *list is malloc'ed
 * for the caller. A process that is gone has none.
 *
 * "signature", if it is not NULL, saves work, because to go through all open files of many IOCs takes milliseconds. It
 * is the value that the last call with these processes stored, 0 at first. If the namespaces of the processes have the
 * same listening sockets as then, the function returns -1 and looks at no process. It does not notice a socket that
 * another process took over, so the caller sets *signature to 0 now and then. */
int ebpfMonServerSocketsRead(const pid_t *pids, unsigned count, unsigned max, uint64_t *signature,
                             ebpfMonServerSocket **list);

/* The process that listens for this connection; 0: none on this host. Takes milliseconds. */
pid_t ebpfMonServerSocketsFindProcess(const struct ebpfMonPeer *peer);

/* Nonzero: the sender of a datagram, peer->addr and peer->port, may be a process of this host: it came over loopback,
 * or from an address of our own network namespace. */
int ebpfMonServerSocketsIsOurHost(const struct ebpfMonPeer *peer);

/* Nonzero: this process has the UDP socket that sent such a datagram. Takes a millisecond. */
int ebpfMonServerSocketsSends(pid_t pid, const struct ebpfMonPeer *peer);

#endif
