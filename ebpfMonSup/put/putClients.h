/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The texts of a client for a put: the names that the client claims; for a client on this host also its process,
 * command, container and user, as the kernel and /proc have them.
 *
 * These functions read /proc and wait for a user name (how long at most: below). So call them before the lock
 * of the targets, or any other lock of the event path, is taken. Their own lock is held for copies only.
 */
#ifndef EBPFMON_PUTCLIENTS_H
#define EBPFMON_PUTCLIENTS_H

#include <stddef.h>
#include <sys/types.h>

#include "ebpfMonTable.h"
#include "model/put.h"

/* --- names of users ---
 *
 * User names by uid. A name service (LDAP, NIS) may hang for minutes; here is a bound on how long a caller waits for
 * it.
 *
 * A thread of its own asks the name service. A caller waits for a name until "deadline" after this uid was asked for
 * first. After that nobody waits for this uid any more: callers get its number until the name is there. While one call
 * of the name service takes longer than the deadline, nobody waits for any uid.
 *
 * So a name service that hangs stops a caller once, for "deadline" at most. One that is slow stops it for "deadline" at
 * most for each new uid. Names are remembered. One that is older than a minute is asked for again, and the old one is
 * used meanwhile. */

typedef struct ebpfMonUserNames ebpfMonUserNames;

/* Asks the name service. 0, or -1: it has no name for this uid. May take any time. Always fills "buf". */
typedef int (*ebpfMonUserNameReader)(uid_t uid, char *buf, size_t size);

/* "deadline": seconds. NULL without memory. */
ebpfMonUserNames *ebpfMonUserNamesNew(ebpfMonUserNameReader read, double deadline);

/* Ends the thread; it is waited for "seconds". 0, or -1 with a message: the name service hangs, and nothing is
 * freed. */
int ebpfMonUserNamesFree(ebpfMonUserNames *names, double seconds);

/* Nonzero: "buf" has the name, or the number as text if the uid has no name. 0: it is not known yet, and "buf" has the
 * number. Any thread; waits as is said above, so no lock of the event path may be held. */
int ebpfMonUserNamesFind(ebpfMonUserNames *names, uid_t uid, char *buf, size_t size);

/* --- clients --- */

typedef struct ebpfMonPutClients ebpfMonPutClients;

/* Members are as those of the same name in ebpfMonPut. */
typedef struct {
    char     peer[EBPFMON_PEER_SIZE], server[EBPFMON_PEER_SIZE], published[EBPFMON_PEER_SIZE];
    char     user[40], authority[64], host[64];
    char     realUser[40];
    char     command[64], container[64];
    int      isUnsure;
    uint32_t peerPid, peerUid; /* peerPid 0: it is not on this host, or the process is not known */
} ebpfMonPutClient;

/* Which process has opened a connection: ebpfMonKernelGetOwner. Any thread. */
typedef uint32_t (*ebpfMonOwnerFinder)(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                                       struct ebpfMonOwner *owner);

/* By which certificate a watched IOC knows the client of a connection: ebpfMonKernelGetCertificate. Event thread. */
typedef int (*ebpfMonCertificateFinder)(const struct ebpfMonPeer *peer, struct ebpfMonCertificate *certificate);

/* The user names stay the caller's. NULL without memory. */
ebpfMonPutClients *ebpfMonPutClientsNew(ebpfMonUserNames *users, ebpfMonOwnerFinder findOwner,
                                        ebpfMonCertificateFinder findCertificate);
void ebpfMonPutClientsFree(ebpfMonPutClients *clients);

/* The client of a connection. "first": NULL: not known; then the process of a client in another namespace than the
 * server's is not known either. "user" and "host": as it claims, or "". Any thread. */
void ebpfMonPutClientsFind(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                           const struct ebpfMonFirst *first, const char *user, const char *host,
                           ebpfMonPutClient *client);

/* The same of a connection that is a translation of "outer" (put/packetEvents.h). */
void ebpfMonPutClientsFindOuter(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                                const struct ebpfMonPeer *outer, const struct ebpfMonFirst *first, const char *user,
                                const char *host, ebpfMonPutClient *client);

/* The client that a thread of a watched IOC serves. Nonzero: there is one, and *client is set. Event thread. */
int ebpfMonPutClientsFindByThread(ebpfMonPutClients *clients, const struct ebpfMonHead *head,
                                  const struct ebpfMonWho *who, ebpfMonPutClient *client);

/* The process of a gateway: "python pvagw" is called pvagw[4711]. */
void ebpfMonPutClientNameProcess(const ebpfMonPutClient *client, char *buf, size_t size);

/* Sets the members of "put" that tell the client. */
void ebpfMonPutClientSet(const ebpfMonPutClient *client, ebpfMonPut *put);

#endif
