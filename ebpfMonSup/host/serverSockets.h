/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of this host listens at which address and port. These functions read /proc, so the caller holds no lock
 * of the event path. */
#ifndef EBPFMON_SERVERSOCKETS_H
#define EBPFMON_SERVERSOCKETS_H

#include "ebpfMonEvent.h"
#include "host/socketOwners.h"

/* Nonzero: a connection with this server came in through the socket. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *socket, const struct ebpfMonPeer *peer);

/* The sockets on which these processes listen, at most "max", in the network namespaces of the first
 * "watched" of them and in our own. Returns their number; *list is malloc'ed for the caller. A process that is gone has
 * none.
 *
 * "owners", if it is not NULL, saves work: it remembers what the last call found (socketOwners.h). If the namespaces of
 * the processes have the same listening sockets as then, the function returns -1 and looks at no process. So a socket
 * that another process took over is noticed when any of these sockets or processes comes or goes. */
int ebpfMonServerSocketsRead(const pid_t *pids, unsigned watched, unsigned count, unsigned max,
                             ebpfMonSocketOwners *owners, ebpfMonServerSocket **list);

/* The process that listens for this connection in namespace peer->netns, or with 0 in any; 0: none does. Takes
 * milliseconds. */
pid_t ebpfMonServerSocketsFindProcess(const struct ebpfMonPeer *peer);

/* Nonzero: the sender of a datagram, peer->addr and peer->port, may be a process of this host: it came over loopback,
 * or from an address of our own network namespace. */
int ebpfMonServerSocketsIsOurHost(const struct ebpfMonPeer *peer);

/* Nonzero: this process has the UDP socket that sent such a datagram. Takes a millisecond. */
int ebpfMonServerSocketsSends(pid_t pid, const struct ebpfMonPeer *peer);

#endif
