/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "access/client.h"
#include "host/tcpSockets.h"
#include "ioc/baseLayout.h"

/* --- users of peers --- */

#define ENDS_MAX 8       /* our connections to one address and port; more than one is possible with SO_REUSEADDR */
#define PATIENCE 0.2     /* s; how long we wait for the kernel, which answers within microseconds */
#define FILES_MAX (1 << 20) /* of a process; fs.nr_open */

/* An address of a socket. */
typedef union {
    struct sockaddr     any;
    struct sockaddr_in  v4;
    struct sockaddr_in6 v6;
} address;

/* One per process, because Base calls the guard without a context. Open from the start: who writes to the monitor must
 * be known, too, when no file is left. */
static struct {
    epicsMutexId lock;
    int diag;           /* netlink socket for questions to the kernel; -1: this kernel has no sock_diag */
    int bound4, bound6; /* UDP sockets that are bound to an address and never to a port; -1: could not be opened */
} sockets;

/* Our ends of all connections to one address and port. */
typedef struct {
    int fd[ENDS_MAX];
    struct ebpfMonPeer at[ENDS_MAX];
    unsigned count;
} ownEnds;

/* The socket at the other end, as the kernel tells it. */
typedef struct {
    struct ebpfMonPeer at; /* as it sees the connection */
    int   isFound;         /* such a socket is open and established */
    uid_t uid;
} otherEnd;

/* As struct ebpfMonPeer has one end of a connection. */
static void splitAddress(const address *from, __u32 *addr, __u32 addr6[4], __u16 *port)
{
    *port = from->any.sa_family == AF_INET6 ? from->v6.sin6_port : from->v4.sin_port;
    *addr = from->v4.sin_addr.s_addr;
    memset(addr6, 0, 4 * sizeof(*addr6));
    if (from->any.sa_family != AF_INET6)
        return;
    memcpy(addr6, &from->v6.sin6_addr, sizeof(from->v6.sin6_addr));
    *addr = ebpfMonIsMapped(addr6) ? addr6[3] : ebpfMonShortAddress(addr6);
    if (ebpfMonIsMapped(addr6))
        memset(addr6, 0, 4 * sizeof(*addr6));
}

/* Notes this file if it is a connection to "peer". 0, or -1: there are too many. */
static int addOwnEnd(int fd, const struct ebpfMonPeer *peer, ownEnds *ends)
{
    address other, here;
    socklen_t otherSize = sizeof(other), hereSize = sizeof(here);
    struct ebpfMonPeer at = { .netns = 0 };

    if (getpeername(fd, &other.any, &otherSize) || getsockname(fd, &here.any, &hereSize) ||
        (other.any.sa_family != AF_INET && other.any.sa_family != AF_INET6))
        return 0;
    splitAddress(&other, &at.addr, at.addr6, &at.port);
    splitAddress(&here, &at.saddr, at.saddr6, &at.sport);
    if (at.port != peer->port || !ebpfMonIsSameAddress(at.addr, at.addr6, peer->addr, peer->addr6))
        return 0;
    if (ends->count == ENDS_MAX)
        return -1;
    ends->fd[ends->count] = fd;
    ends->at[ends->count++] = at;
    return 0;
}

/* The same without a list of our files, for which a file is needed: if there is none, most numbers up to the limit are
 * in use. */
static int findOwnEndsByNumber(const struct ebpfMonPeer *peer, ownEnds *ends)
{
    struct rlimit limit = { .rlim_cur = FILES_MAX };
    int status = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; !status && fd < FILES_MAX && (rlim_t)fd < limit.rlim_cur; fd++)
        status = addOwnEnd(fd, peer, ends);
    return status;
}

/* Finds our ends of the connections to "peer". 0, or -1: our sockets cannot be listed, or there are too many ends. */
static int findOwnEnds(const struct ebpfMonPeer *peer, ownEnds *ends)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int status = 0;

    ends->count = 0;
    if (!dir)
        return errno == EMFILE || errno == ENFILE ? findOwnEndsByNumber(peer, ends) : -1;
    while (!status && (entry = readdir(dir)) != NULL)
        if (entry->d_name[0] != '.')
            status = addOwnEnd(atoi(entry->d_name), peer, ends);
    closedir(dir);
    return status;
}

static int isEstablished(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_state == ebpfMonTcpEstablished;
}

/* Nonzero: the client's address belongs to this network namespace, or this cannot be found out. bind() looks into the
 * routing table, as the kernel does for a packet that arrives (inet_addr_type, net/ipv4/fib_frontend.c). A socket
 * without a port can be bound again. */
static int isOurAddress(const struct ebpfMonPeer *peer)
{
    int is6 = ebpfMonIsIPv6(peer->addr6), isOurs;
    address name = { .v4 = { .sin_family = AF_INET, .sin_addr = { peer->addr } } };

    if (is6) {
        name.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
        memcpy(&name.v6.sin6_addr, peer->addr6, sizeof(name.v6.sin6_addr));
    }
    epicsMutexMustLock(sockets.lock);
    isOurs = bind(is6 ? sockets.bound6 : sockets.bound4, &name.any, is6 ? sizeof(name.v6) : sizeof(name.v4)) == 0 ||
             errno != EADDRNOTAVAIL;
    epicsMutexUnlock(sockets.lock);
    return isOurs;
}

/* Asks the kernel for the socket (sock_diag(7)). Nonzero: end->uid is set. 0: there is no such socket, or this
 * kernel has no sock_diag for TCP. */
static int askKernel(otherEnd *end)
{
    struct inet_diag_msg found;

    epicsMutexMustLock(sockets.lock);
    end->isFound = ebpfMonSockDiagFind(sockets.diag, 0, &end->at, &found) && found.idiag_inode &&
                   found.idiag_state == ebpfMonTcpEstablished;
    epicsMutexUnlock(sockets.lock);
    if (end->isFound)
        end->uid = found.idiag_uid;
    return end->isFound;
}

static int compareRow(void *arg, const ebpfMonTcpRow *row)
{
    otherEnd *end = arg;
    const struct ebpfMonPeer *at = &end->at;
    int is6 = ebpfMonIsIPv6(at->addr6);

    if (row->inode && row->localPort == at->sport && row->remotePort == at->port &&
        (is6 ? row->v6 && memcmp(row->local6, at->saddr6, sizeof(at->saddr6)) == 0 &&
               memcmp(row->remote6, at->addr6, sizeof(at->addr6)) == 0
             : row->v4 && row->local == at->saddr && row->remote == at->addr)) {
        end->uid = row->uid;
        end->isFound = 1;
    }
    return end->isFound;
}

static void findLocal(const ownEnds *ends, ebpfMonPeerUser *user)
{
    for (unsigned i = 0; i < ends->count; i++) {
        otherEnd end = { .at = ebpfMonPeerSwap(&ends->at[i]) };

        if (!askKernel(&end))
            ebpfMonTcpRows(0, EBPFMON_TCP_STATE(ebpfMonTcpEstablished), compareRow, &end);
        /* our own socket is looked at last: then it was established when the other end was found (client.h) */
        if (!end.isFound || !isEstablished(ends->fd[i])) {
            user->why = "the client has closed its connection";
            return;
        }
        if (i && end.uid != user->uid) {
            user->why = "two users have connections from this port";
            return;
        }
        user->uid = end.uid;
    }
    user->kind = ebpfMonPeerLocal;
}

/* A UDP socket for isOurAddress. */
static int openUnbound(int family)
{
    const int yes = 1;
    int file = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (file >= 0 && setsockopt(file, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes))) {
        close(file);
        file = -1;
    }
    return file;
}

void ebpfMonPeerUserInit(void)
{
    if (sockets.lock)
        return;
    sockets.lock = epicsMutexMustCreate();
    sockets.diag = ebpfMonSockDiagOpen(0, PATIENCE);
    sockets.bound4 = openUnbound(AF_INET);
    sockets.bound6 = openUnbound(AF_INET6);
}

void ebpfMonPeerUserFind(const struct ebpfMonPeer *peer, ebpfMonPeerUser *user)
{
    const struct ebpfMonPeer wanted = *peer; /* it may be the one in *user */
    ownEnds ends;

    memset(user, 0, sizeof(*user));
    user->connection = wanted;
    user->why = "";
    if (findOwnEnds(&wanted, &ends)) {
        user->why = "the monitor cannot list its own sockets";
        return;
    }
    if (!ends.count) {
        user->why = "the monitor has no connection to this client";
        return;
    }
    user->connection = ends.at[0];
    if (isOurAddress(&wanted))
        findLocal(&ends, user);
    else
        user->kind = ebpfMonPeerRemote;
}

/* --- clients --- */

/* The thread variable of the CA server: the struct client that the thread serves (camsgtask.c). Base does not
 * install rsrv/server.h, which declares it. dbServerClient() would give only names that the client claims. Weak: if
 * a program has no CA server, no CA client is known. */
extern epicsThreadPrivateId rsrvCurrentClient __attribute__((weak));

/* One in each thread, because the servers call us in the thread of the connection, and pass no context. */
static _Thread_local struct {
    const void          *caClient; /* the struct client of rsrv from which "ca" was made */
    ebpfMonAccessClient  ca;
    ebpfMonAccessClient *pva;      /* NULL: this thread serves no PVA client */
} here;

/* Reads the client's address out of the struct client of rsrv. client.c looks for this address among our own
 * connections. So if another release of Base has another struct, the client is unknown, but never a wrong one. One that
 * is unknown may be known later: perhaps no file was left. */
static const ebpfMonAccessClient *getCaClient(const char *caClient)
{
    if (here.ca.user.kind == ebpfMonPeerUnknown || here.caClient != caClient) {
        struct sockaddr_in peer;
        struct ebpfMonPeer at = { .netns = 0 };

        memcpy(&peer, caClient + ebpfMonBaseReleaseGet(0)->client.addr, sizeof(peer));
        at.addr = peer.sin_addr.s_addr;
        at.port = peer.sin_port;
        here.caClient = caClient;
        here.ca.server = ebpfMonClientCa;
        ebpfMonPeerUserFind(&at, &here.ca.user);
    }
    return &here.ca;
}

const ebpfMonAccessClient *ebpfMonAccessClientHere(void)
{
    const char *caClient = &rsrvCurrentClient && rsrvCurrentClient ? epicsThreadPrivateGet(rsrvCurrentClient) : NULL;

    if (caClient)
        return getCaClient(caClient);
    if (here.pva && here.pva->user.kind == ebpfMonPeerUnknown && here.pva->user.connection.port)
        ebpfMonPeerUserFind(&here.pva->user.connection, &here.pva->user);
    return here.pva;
}

void ebpfMonAccessClientFindPva(const char *peer, ebpfMonAccessClient *client)
{
    char text[INET6_ADDRSTRLEN];
    address at = { .any = { .sa_family = AF_INET } };
    struct ebpfMonPeer found = { .netns = 0 };
    unsigned port = 0;

    memset(client, 0, sizeof(*client));
    client->server = ebpfMonClientPva;
    client->user.why = "its server does not tell its address";
    if (sscanf(peer, "[%45[0-9a-fA-F:.]]:%u", text, &port) == 2)
        at.any.sa_family = AF_INET6;
    else if (sscanf(peer, "%45[0-9.]:%u", text, &port) != 2)
        return;
    if (port == 0 || port > UINT16_MAX ||
        inet_pton(at.any.sa_family, text, at.any.sa_family == AF_INET6 ? (void *)&at.v6.sin6_addr
                                                                       : (void *)&at.v4.sin_addr) != 1)
        return;
    splitAddress(&at, &found.addr, found.addr6, &found.port);
    found.port = htons((uint16_t)port);
    ebpfMonPeerUserFind(&found, &client->user); /* now, while the client is connected */
}

void ebpfMonAccessClientServe(ebpfMonAccessClient *client)
{
    here.pva = client;
}
