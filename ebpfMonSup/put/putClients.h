/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The texts of a client for a put: the names that the client claims; for a client on this host also its process,
 * command, container and user, as the kernel and /proc have them.
 *
 * These functions read /proc and wait for a user name (userNames.h says how long at most). So call them before the lock
 * of the targets, or any other lock of the event path, is taken. Their own lock is held for copies only.
 */
#ifndef EBPFMON_PUTCLIENTS_H
#define EBPFMON_PUTCLIENTS_H

#include "ebpfMonEvent.h"
#include "model/put.h"
#include "put/userNames.h"

typedef struct ebpfMonPutClients ebpfMonPutClients;

/* Members are as those of the same name in ebpfMonPut. */
typedef struct {
    char     peer[EBPFMON_PEER_SIZE], server[EBPFMON_PEER_SIZE], published[EBPFMON_PEER_SIZE];
    char     user[40], host[64];
    char     realUser[40];
    char     command[64], container[64];
    int      isUnsure;
    uint32_t peerPid, peerUid; /* peerPid 0: it is not on this host, or the process is not known */
} ebpfMonPutClient;

/* Which process has opened a connection: ebpfMonKernelGetOwner. Any thread. */
typedef uint32_t (*ebpfMonOwnerFinder)(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                                       struct ebpfMonOwner *owner);

/* The user names stay the caller's. NULL without memory. */
ebpfMonPutClients *ebpfMonPutClientsNew(ebpfMonUserNames *users, ebpfMonOwnerFinder findOwner);
void ebpfMonPutClientsFree(ebpfMonPutClients *clients);

/* The client of a connection. "first": NULL: not known; then the process of a client in another namespace than the
 * server's is not known either. "user" and "host": as it claims, or "". Any thread. */
void ebpfMonPutClientsFind(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                           const struct ebpfMonFirst *first, const char *user, const char *host,
                           ebpfMonPutClient *client);

/* The same of a connection that is a translation of "outer" (put/translated.h). */
void ebpfMonPutClientsFindOuter(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                                const struct ebpfMonPeer *outer, const struct ebpfMonFirst *first, const char *user,
                                const char *host, ebpfMonPutClient *client);

/* The client that a thread of a watched IOC serves. Nonzero: there is one, and *client is set. Event thread. */
int ebpfMonPutClientsFindByThread(ebpfMonPutClients *clients, const struct ebpfMonHead *head,
                                  const struct ebpfMonWho *who, ebpfMonPutClient *client);

/* Sets the members of "put" that tell the client. */
void ebpfMonPutClientSet(const ebpfMonPutClient *client, ebpfMonPut *put);

#endif
