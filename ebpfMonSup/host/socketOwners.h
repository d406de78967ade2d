/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of some processes has which listening socket. To find out, all open files of a process are gone through: some
 * 0.1 ms for an IOC, milliseconds for one with many clients. So an object remembers what was found, and at which number
 * of its files the process has the socket. Each object belongs to one thread. Reads /proc, so the caller holds no lock
 * of the event path.
 *
 * What is guaranteed at each call, from what /proc says during the call:
 * - A process that is named has the socket. Of a socket that was known, its file is looked at again. So an IOC that has
 *   ended, another process with the pid of an IOC, a socket that was closed, and a number of a socket that is used again
 *   are noticed at once.
 * - A socket that was not known is looked for in each process of its network namespace, the youngest first; and so is a
 *   socket that the process that had it has no more: it was handed over, or a child has inherited it.
 * - All sockets that are not known to have an owner are looked for in each new process, in whatever namespace they are.
 * - If several processes have a socket at the same number of a file, as after a fork, the oldest is named.
 * What is noticed only after ebpfMonSocketOwnersForget: a socket that nobody of the processes had, and that one of them
 * was given by another program; a new socket of a known process in another network namespace than its own; an older
 * process that has the socket, too, but under another number of a file.
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
    uint32_t addr;  /* network byte order, the port too; 0: any */
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
 * that listen in the namespaces of the processes. "netns": the namespace of each process, 0: not known. Without memory
 * nobody has a socket, and all are looked for again the next time. */
void ebpfMonSocketOwnersFind(ebpfMonSocketOwners *owners, const pid_t *pids, const uint32_t *netns, unsigned count,
                             ebpfMonServerSocket *sockets, size_t socketCount);

#endif
