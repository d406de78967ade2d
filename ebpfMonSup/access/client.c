/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "access/client.h"
#include "host/netnsSocket.h"
#include "host/tcpSockets.h"
#include "ioc/baseLayout.h"

/* --- users of peers --- */

#define ENDS_MAX 8       /* our connections to one address and port; more than one is possible with SO_REUSEADDR */
#define PATIENCE_US 200000 /* how long we wait for the kernel, which answers within microseconds */
#define FILES_MAX (1 << 20) /* of a process; fs.nr_open */

/* One per process, because Base calls the guard without a context. Open from the start: who writes to the monitor must
 * be known, too, when no file is left. */
static struct {
    epicsMutexId lock;
    int diag;        /* netlink socket for questions to the kernel; -1: this kernel has no sock_diag */
    int address;     /* UDP socket that is bound to an address and never to a port; -1: it could not be opened */
    uint32_t number; /* of the last question */
} sockets;

/* Our ends of all connections to one address and port. */
typedef struct {
    int fd[ENDS_MAX];
    struct sockaddr_in here[ENDS_MAX];
    unsigned count;
} ownEnds;

/* The socket at the other end, as the kernel tells it. */
typedef struct {
    const struct sockaddr_in *peer, *here;
    int   isFound;   /* such a socket is open and established */
    uid_t uid;
} otherEnd;

static int isSame(const struct sockaddr_in *a, const struct sockaddr_in *b)
{
    return a->sin_addr.s_addr == b->sin_addr.s_addr && a->sin_port == b->sin_port;
}

/* Notes this file if it is a connection to "peer". 0, or -1: there are too many. */
static int addOwnEnd(int fd, const struct sockaddr_in *peer, ownEnds *ends)
{
    struct sockaddr_in other, here;
    socklen_t otherSize = sizeof(other), hereSize = sizeof(here);

    if (getpeername(fd, (struct sockaddr *)&other, &otherSize) || otherSize != sizeof(other) ||
        other.sin_family != AF_INET || !isSame(&other, peer) ||
        getsockname(fd, (struct sockaddr *)&here, &hereSize) || here.sin_family != AF_INET)
        return 0;
    if (ends->count == ENDS_MAX)
        return -1;
    ends->fd[ends->count] = fd;
    ends->here[ends->count++] = here;
    return 0;
}

/* The same without a list of our files, for which a file is needed: if there is none, most numbers up to the limit are
 * in use. */
static int findOwnEndsByNumber(const struct sockaddr_in *peer, ownEnds *ends)
{
    struct rlimit limit = { .rlim_cur = FILES_MAX };
    int status = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 0; !status && fd < FILES_MAX && (rlim_t)fd < limit.rlim_cur; fd++)
        status = addOwnEnd(fd, peer, ends);
    return status;
}

/* Finds our ends of the connections to "peer". 0, or -1: our sockets cannot be listed, or there are too many ends. */
static int findOwnEnds(const struct sockaddr_in *peer, ownEnds *ends)
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

/* Nonzero: the address belongs to this network namespace, or this cannot be found out. bind() looks into the routing
 * table, as the kernel does for a packet that arrives (inet_addr_type, net/ipv4/fib_frontend.c). A socket without a
 * port can be bound again. */
static int isOurAddress(struct in_addr addr)
{
    struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = addr };
    int isOurs;

    epicsMutexMustLock(sockets.lock);
    isOurs = bind(sockets.address, (struct sockaddr *)&name, sizeof(name)) == 0 || errno != EADDRNOTAVAIL;
    epicsMutexUnlock(sockets.lock);
    return isOurs;
}

/* Nonzero: the answer is about the socket at the other end. If the kernel has no socket with exactly these ends, it
 * may answer with a socket that listens. The socket may also be one of IPv6, with mapped addresses. */
static int isOtherEnd(const struct inet_diag_msg *answer, const otherEnd *end)
{
    unsigned at = answer->idiag_family == AF_INET6 ? 3 : 0;

    return answer->idiag_state == ebpfMonTcpEstablished && answer->idiag_inode &&
           answer->id.idiag_sport == end->peer->sin_port && answer->id.idiag_dport == end->here->sin_port &&
           answer->id.idiag_src[at] == end->peer->sin_addr.s_addr &&
           answer->id.idiag_dst[at] == end->here->sin_addr.s_addr;
}

/* Nonzero: the kernel's answer to this question. One to an earlier question is passed over. */
static int readAnswer(uint32_t number, void *answer, size_t size)
{
    const struct nlmsghdr *head = answer;
    ssize_t n;

    do
        n = recv(sockets.diag, answer, size, 0);
    while (n >= (ssize_t)sizeof(*head) && head->nlmsg_seq != number);
    return n >= (ssize_t)NLMSG_LENGTH(sizeof(struct inet_diag_msg)) && head->nlmsg_type == SOCK_DIAG_BY_FAMILY;
}

/* Asks the kernel for the socket (sock_diag(7)). Nonzero: end->uid is set. 0: there is no such socket, or this
 * kernel has no sock_diag for TCP. */
static int askKernel(otherEnd *end)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } question = {
        .head = { .nlmsg_len = sizeof(question), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = ~0u,
                  .id = { .idiag_sport = end->peer->sin_port, .idiag_dport = end->here->sin_port,
                          .idiag_src = { end->peer->sin_addr.s_addr }, .idiag_dst = { end->here->sin_addr.s_addr },
                          .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
    };
    union {
        struct nlmsghdr head;
        char bytes[1024];
    } answer;
    const struct inet_diag_msg *found = NLMSG_DATA(&answer.head);
    int isAnswered;

    epicsMutexMustLock(sockets.lock);
    question.head.nlmsg_seq = ++sockets.number;
    isAnswered = send(sockets.diag, &question, sizeof(question), 0) == (ssize_t)sizeof(question) &&
                 readAnswer(sockets.number, &answer, sizeof(answer));
    epicsMutexUnlock(sockets.lock);
    if (!isAnswered || !isOtherEnd(found, end))
        return 0;
    end->uid = found->idiag_uid;
    end->isFound = 1;
    return 1;
}

static int compareRow(void *arg, const ebpfMonTcpRow *row)
{
    otherEnd *end = arg;

    if (row->v4 && row->inode && row->local == end->peer->sin_addr.s_addr &&
        row->localPort == end->peer->sin_port && row->remote == end->here->sin_addr.s_addr &&
        row->remotePort == end->here->sin_port) {
        end->uid = row->uid;
        end->isFound = 1;
    }
    return end->isFound;
}

static void findLocal(const ownEnds *ends, ebpfMonPeerUser *user)
{
    for (unsigned i = 0; i < ends->count; i++) {
        otherEnd end = { .peer = &user->peer, .here = &ends->here[i] };

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

void ebpfMonPeerUserInit(void)
{
    const struct timeval patience = { .tv_usec = PATIENCE_US };
    const int yes = 1;

    if (sockets.lock)
        return;
    sockets.lock = epicsMutexMustCreate();
    sockets.diag = ebpfMonNetnsNetlinkOpen(0, NETLINK_SOCK_DIAG);
    if (sockets.diag >= 0 && setsockopt(sockets.diag, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience))) {
        close(sockets.diag);
        sockets.diag = -1;
    }
    sockets.address = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (sockets.address >= 0 && setsockopt(sockets.address, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes))) {
        close(sockets.address);
        sockets.address = -1;
    }
}

void ebpfMonPeerUserFind(const struct sockaddr_in *peer, ebpfMonPeerUser *user)
{
    ownEnds ends;

    memset(user, 0, sizeof(*user));
    user->peer = *peer;
    user->why = "";
    if (findOwnEnds(peer, &ends)) {
        user->why = "the monitor cannot list its own sockets";
        return;
    }
    if (!ends.count) {
        user->why = "the monitor has no connection to this client";
        return;
    }
    user->here = ends.here[0];
    if (isOurAddress(peer->sin_addr))
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
    const void         *caClient;  /* the struct client of rsrv from which "client" was made */
    struct sockaddr_in  pva;       /* sin_port 0: this thread serves no PVA client */
    ebpfMonAccessClient client;
} here;

static void findClient(ebpfMonClientServer server, const struct sockaddr_in *peer)
{
    here.client.server = server;
    ebpfMonPeerUserFind(peer, &here.client.user);
}

/* It may be known later: perhaps no file was left. */
static int isUnknown(void)
{
    return here.client.user.kind == ebpfMonPeerUnknown;
}

/* Reads the client's address out of the struct client of rsrv. client.c looks for this address among our own
 * connections. So if another release of Base has another struct, the client is unknown, but never a wrong one. */
static const ebpfMonAccessClient *getCaClient(const char *caClient)
{
    if (isUnknown() || here.caClient != caClient) {
        struct sockaddr_in peer;

        memcpy(&peer, caClient + ebpfMonBaseReleaseGet(0)->client.addr, sizeof(peer));
        here.caClient = caClient;
        findClient(ebpfMonClientCa, &peer);
    }
    return &here.client;
}

const ebpfMonAccessClient *ebpfMonAccessClientHere(void)
{
    const char *caClient = &rsrvCurrentClient && rsrvCurrentClient ? epicsThreadPrivateGet(rsrvCurrentClient) : NULL;

    if (caClient)
        return getCaClient(caClient);
    if (!here.pva.sin_port)
        return NULL;
    if (isUnknown())
        findClient(ebpfMonClientPva, &here.pva);
    return &here.client;
}

void ebpfMonAccessClientNotePva(const char *peer)
{
    char addr[INET_ADDRSTRLEN];
    unsigned port;

    memset(&here, 0, sizeof(here));
    if (sscanf(peer, "%15[0-9.]:%u", addr, &port) != 2 || port == 0 || port > UINT16_MAX ||
        inet_pton(AF_INET, addr, &here.pva.sin_addr) != 1)
        return;
    here.pva.sin_family = AF_INET;
    here.pva.sin_port = htons((uint16_t)port);
    findClient(ebpfMonClientPva, &here.pva); /* now, while the client is connected */
}
