/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients for tests. A client with port 1000 is this process, and its user has the name "phil". All others are on
 * other hosts. */
#ifndef EBPFMON_FAKECLIENTS_H
#define EBPFMON_FAKECLIENTS_H

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "put/putClients.h"

#define FAKE_LOCAL_PORT 1000

static ebpfMonUserNames *fakeUsers;

static int fakeReadUser(uid_t uid, char *buf, size_t size)
{
    (void)uid;
    snprintf(buf, size, "phil");
    return 0;
}

static int fakeFindCertificate(const struct ebpfMonPeer *peer, struct ebpfMonCertificate *certificate)
{
    return 0;
}

static uint32_t fakeFindOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                              struct ebpfMonOwner *owner)
{
    (void)first;
    if (ntohs(peer->port) != FAKE_LOCAL_PORT)
        return 0;
    *owner = (struct ebpfMonOwner){ .pid = (uint32_t)getpid(), .uid = 1000, .comm = "test" };
    return 1;
}

static inline struct ebpfMonPeer fakePeer(unsigned port, unsigned serverPort)
{
    return (struct ebpfMonPeer){ .addr = htonl(0x0a000001), .saddr = htonl(0x0a000002), .port = htons((uint16_t)port),
                                 .sport = htons((uint16_t)serverPort) };
}

/* A CA client for which a thread of the IOC works. */
static inline struct ebpfMonWho fakeCaClient(unsigned port, const char *user, const char *host)
{
    struct ebpfMonWho who = { .peer = fakePeer(port, 5064), .isCA = 1, .comm = "CAS-client" };

    fakeFindOwner(&who.peer, NULL, &who.owner);
    memcpy(who.user, user, strlen(user));
    memcpy(who.host, host, strlen(host));
    return who;
}

static inline ebpfMonPutClients *fakeClientsMake(ebpfMonUserNameReader read)
{
    fakeUsers = ebpfMonUserNamesNew(read ? read : fakeReadUser, 60);
    return ebpfMonPutClientsNew(fakeUsers, fakeFindOwner, fakeFindCertificate);
}

static inline void fakeClientsFree(ebpfMonPutClients *clients)
{
    ebpfMonPutClientsFree(clients);
    ebpfMonUserNamesFree(fakeUsers, 60);
}

#endif
