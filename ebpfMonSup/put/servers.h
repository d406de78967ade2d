/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which server a connection leads to: a watched IOC, another process of this host, or an address elsewhere. Packet
 * thread only. /proc is read, but never while the lock of the targets is held.
 */
#ifndef EBPFMON_SERVERS_H
#define EBPFMON_SERVERS_H

#include "ebpfMonEvent.h"
#include "host/serverSockets.h"
#include "watch/target.h"

typedef struct {
    uint32_t iocId;  /* of an IOC that is found; 0: no such IOC */
    pid_t    pid;    /* its process; 0: not known */
    int      isSeen; /* its puts are seen inside, or will be at once */
    int      off;    /* an IOC that the filter does not want; or as isElsewhere, but packets of its namespace are not
                      * read */
    int      isElsewhere; /* its socket is in another network namespace than the packets, and the packets there count:
                           * these are copies of them, or forged … */
    uint64_t elsewhereSince; /* … from then on; monotonic ns. What came before was read here only */
    uint32_t netns;  /* of its socket; 0: not known */
    char     name[EBPFMON_IOCNAME_SIZE]; /* of a process of this host; else ADDRESS:PORT */
} ebpfMonServer;

/* The functions that read from this host; a test has functions of its own. */
typedef struct {
    int      (*readSockets)(const pid_t *pids, unsigned watched, unsigned count, unsigned max,
                            ebpfMonSocketOwners *owners, ebpfMonServerSocket **list);
    int      (*accepts)(const ebpfMonServerSocket *socket, const struct ebpfMonPeer *peer);
    pid_t    (*findProcess)(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer, ebpfMonHostLook *look);
    int      (*readName)(pid_t pid, char *buf, size_t size); /* -1: it has ended */
    long     (*readQueue)(pid_t pid, const struct ebpfMonPeer *peer); /* as ebpfMonTcpDiagReadQueue */
    uint32_t (*readNetns)(pid_t pid);
} ebpfMonServerReaders;

typedef struct ebpfMonServers ebpfMonServers;

/* "readers" NULL: reads /proc. The targets stay the caller's. NULL without memory. */
ebpfMonServers *ebpfMonServersNew(ebpfMonTargets *targets, const ebpfMonServerReaders *readers);
void ebpfMonServersFree(ebpfMonServers *servers);

/* The packets of these network namespaces are read, since these times; monotonic ns, UINT64_MAX: not yet. */
void ebpfMonServersSetCovered(ebpfMonServers *servers, const uint32_t *netns, const uint64_t *since, unsigned count);

/* Since when; UINT64_MAX: they are not read. */
uint64_t ebpfMonServersGetCovered(const ebpfMonServers *servers, uint32_t netns);

/* The process that listens there, in namespace peer->netns; 0: none. Searches all processes. */
pid_t ebpfMonServersFindProcess(ebpfMonServers *servers, const struct ebpfMonPeer *peer);

/* The server of a connection. Valid until the next call. "now": monotonic ns. Packets count for a server if they were
 * seen in the namespace of its socket (peer->netns). If no packets are read there, those in the monitor's own namespace
 * count, which a user without privileges cannot write. */
const ebpfMonServer *ebpfMonServersFind(ebpfMonServers *servers, const struct ebpfMonPeer *peer, uint64_t now);

/* A connection begins: if its server is no IOC and has ended, another one may have its port. */
void ebpfMonServersNoteOpened(ebpfMonServers *servers, const struct ebpfMonPeer *peer);

/* The watched IOC that listens there, as far as its sockets are known. NULL: none. Asks nobody. */
const ebpfMonServer *ebpfMonServersFindKnown(const ebpfMonServers *servers, const struct ebpfMonPeer *peer);

/* Nonzero: the IOC still runs. */
int ebpfMonServersIsRunning(ebpfMonServers *servers, uint32_t iocId);

/* Nonzero: the IOC has not read all that came through this connection. 0: it has, the socket is gone, or the kernel
 * does not tell. Asks the kernel. */
int ebpfMonServersHasUnread(ebpfMonServers *servers, uint32_t iocId, const struct ebpfMonPeer *peer);

/* IOCs came or went, or are watched at another level: reads their sockets again. Calls "port" for each port (host byte
 * order) on which an IOC listens. */
void ebpfMonServersRefresh(ebpfMonServers *servers, void (*port)(void *arg, uint32_t netns, uint16_t port), void *arg);

#endif
