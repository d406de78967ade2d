/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process of this host listens at which address and port. These functions read /proc, so the caller holds no lock
 * of the event path. */
#ifndef EBPFMON_SERVERSOCKETS_H
#define EBPFMON_SERVERSOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonEvent.h"

/* --- who has a listening socket ---
 *
 * Which of some processes has which listening socket. To find out, all open files of a process are gone through: some
 * 0.1 ms for an IOC, milliseconds for one with many clients. So an object remembers what was found, and at which number
 * of its files the process has the socket. Each object belongs to one thread. Reads /proc, so the caller holds no lock
 * of the event path.
 *
 * What is guaranteed at each call, from what /proc says during the call:
 * - A process that is named has the socket. If it was known to have it, its file is looked at again. This notices that
 *   an IOC has ended, that another process has its pid, and that a socket was closed, also if the number of the file
 *   is used again.
 * - A socket that was not known is looked for in each process of its network namespace, the youngest first. So is a
 *   socket that its owner has no more: it was handed over, or a child has inherited it.
 * - All sockets that are not known to have an owner are looked for in each new process, in whatever namespace they are.
 * - If several processes have a socket at the same number of a file, as after a fork, the oldest is named.
 * Noticed only after ebpfMonSocketOwnersForget: that another program gave one of the processes a socket that none of
 * them had; that a known process has a new socket in another network namespace than its own; that an older process has
 * the socket, too, but at another number of its files.
 */

/* A socket on which a server listens. */
typedef struct {
    pid_t    pid;   /* who has it; 0: none of the processes */
    uint32_t netns;
    int      v4, v6; /* clients of IPv4, of IPv6 can reach it */
    uint32_t addr;  /* network byte order, the port too; 0: any */
    uint32_t addr6[4];
    uint16_t port;
    unsigned file;  /* at which number the process has it */
    unsigned long inode;
} ebpfMonServerSocket;

typedef struct ebpfMonSocketOwners ebpfMonSocketOwners;

/* Knows nothing. NULL without memory. */
ebpfMonSocketOwners *ebpfMonSocketOwnersNew(void);
void ebpfMonSocketOwnersFree(ebpfMonSocketOwners *owners);

/* The next call of findSocketOwners goes through all files of all processes. */
void ebpfMonSocketOwnersForget(ebpfMonSocketOwners *owners);

/* --- who listens --- */

/* Nonzero: a connection with this server came in through the socket. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *socket, const struct ebpfMonPeer *peer);

/* The sockets on which these processes listen, at most "max", in the network namespaces of the first
 * "watched" of them and in our own. Returns their number; *list is malloc'ed for the caller. A process that is gone has
 * none.
 *
 * "owners", if it is not NULL, saves work: it remembers what the last call found. If the namespaces of
 * the processes have the same listening sockets as then, the function returns -1 and looks at no process. So a socket
 * that another process took over is noticed when any of these sockets or processes comes or goes. */
int ebpfMonServerSocketsRead(const pid_t *pids, unsigned watched, unsigned count, unsigned max,
                             ebpfMonSocketOwners *owners, ebpfMonServerSocket **list);

/* The process that listens for this connection in namespace peer->netns, or with 0 in any; 0: none does. Takes
 * milliseconds. */
pid_t ebpfMonServerSocketsFindProcess(const struct ebpfMonPeer *peer);

/* The same for who is asked again and again. Anybody can send packets with many addresses, each of which is asked for;
 * so all that listen are remembered, and read anew while that takes less than a twentieth of the time. */
typedef struct ebpfMonHostSockets ebpfMonHostSockets;

ebpfMonHostSockets *ebpfMonHostSocketsNew(void); /* NULL without memory */
void ebpfMonHostSocketsFree(ebpfMonHostSockets *host);

/* Zeros at first; one for all questions about a connection. */
typedef struct {
    int      isUrgent; /* all that listen must be read for it */
    int      isRead;   /* … they were */
    uint64_t again;    /* monotonic ns; before then the same is answered, from what was read earlier. 0: it is new */
} ebpfMonHostLook;

pid_t ebpfMonHostSocketsFind(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer, ebpfMonHostLook *look);

/* Nonzero: the sender of a datagram, peer->addr and peer->port, may be a process of this host: it came over loopback,
 * or from an address of our own network namespace. */
int ebpfMonServerSocketsIsOurHost(const struct ebpfMonPeer *peer);

/* Nonzero: this process has the UDP socket that sent such a datagram. Takes a millisecond. */
int ebpfMonServerSocketsSends(pid_t pid, const struct ebpfMonPeer *peer);

#endif
