/* SPDX-License-Identifier: BSD-3-Clause */
/*
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
#ifndef EBPFMON_SOCKETOWNERS_H
#define EBPFMON_SOCKETOWNERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* The next call of ebpfMonSocketOwnersFind goes through all files of all processes. */
void ebpfMonSocketOwnersForget(ebpfMonSocketOwners *owners);

/* Nonzero: the last call of ebpfMonSocketOwnersFind was for these processes and sockets, in the same order, and nothing
 * was forgotten since. */
int ebpfMonSocketOwnersKnow(const ebpfMonSocketOwners *owners, const pid_t *pids, unsigned count,
                            const ebpfMonServerSocket *sockets, size_t socketCount);

/* Sets "pid" and "file" of each socket, and sorts them by inode; the rest is the caller's. "sockets" are all
 * that listen in some of the namespaces of the processes. "netns": the namespace of each process, 0: not known. Without
 * memory nobody has a socket, and all are looked for again the next time. */
void ebpfMonSocketOwnersFind(ebpfMonSocketOwners *owners, const pid_t *pids, const uint32_t *netns, unsigned count,
                             ebpfMonServerSocket *sockets, size_t socketCount);

#endif
