/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/array.h"
#include "common/hash.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procTcp.h"
#include "host/serverSockets.h"

/* The sockets on which somebody listens in the namespaces of several processes. */
typedef struct {
    ebpfMonServerSocket *sockets; /* pid: not known yet */
    size_t   count, room;
    uint32_t netns;               /* whose sockets are added */
} listeningSearch;

static void setAddress(ebpfMonServerSocket *socket, const ebpfMonTcpRow *row)
{
    socket->v4 = row->v4;
    socket->v6 = row->v6;
    socket->addr = row->v4 ? row->local : 0;
    memcpy(socket->addr6, row->local6, sizeof(socket->addr6));
    socket->port = row->localPort;
}

static int addListening(void *arg, const ebpfMonTcpRow *row)
{
    listeningSearch *s = arg;
    ebpfMonServerSocket socket = { .inode = row->inode, .netns = s->netns };

    setAddress(&socket, row);
    if (ebpfMonArrayGrow(&s->sockets, &s->room, s->count + 1, 64, sizeof(*s->sockets)) == 0)
        s->sockets[s->count++] = socket;
    return 0;
}

/* Reads each namespace once. "netns": for the namespace of each process. */
static void readListening(listeningSearch *s, const pid_t *pids, uint32_t *netns, unsigned watched, unsigned count)
{
    uint32_t own = ebpfMonProcNetns(getpid());

    for (unsigned i = 0; i < count; i++) {
        unsigned k = 0;

        netns[i] = ebpfMonProcNetns(pids[i]);
        if (i >= watched && netns[i] != own)
            continue;
        while (k < i && netns[k] != netns[i])
            k++;
        s->netns = netns[i];
        if (k == i && s->netns)
            ebpfMonTcpRows(pids[i], EBPFMON_TCP_STATE(ebpfMonTcpListen), addListening, s);
    }
}

/* Moves the sockets that one of the processes has to the begin. Returns their number. */
static unsigned keepOwned(listeningSearch *s, unsigned max)
{
    unsigned kept = 0;

    for (size_t i = 0; i < s->count && kept < max; i++)
        if (s->sockets[i].pid)
            s->sockets[kept++] = s->sockets[i];
    return kept;
}

/* Returns as ebpfMonServerSocketsRead. */
static int readOwned(const pid_t *pids, uint32_t *netns, unsigned watched, unsigned count, unsigned max,
                     ebpfMonSocketOwners *owners, ebpfMonServerSocket **list)
{
    listeningSearch s = { .count = 0 };

    readListening(&s, pids, netns, watched, count);
    if (ebpfMonSocketOwnersKnow(owners, pids, count, s.sockets, s.count)) {
        free(s.sockets);
        return -1;
    }
    ebpfMonSocketOwnersFind(owners, pids, netns, count, s.sockets, s.count);
    *list = s.sockets;
    return (int)keepOwned(&s, max);
}

int ebpfMonServerSocketsRead(const pid_t *pids, unsigned watched, unsigned count, unsigned max,
                             ebpfMonSocketOwners *owners, ebpfMonServerSocket **list)
{
    ebpfMonSocketOwners *none = owners ? NULL : ebpfMonSocketOwnersNew();
    uint32_t *netns = calloc(count ? count : 1, sizeof(*netns));
    int found = 0;

    *list = NULL;
    if (netns && (owners || none))
        found = readOwned(pids, netns, watched, count, max, owners ? owners : none, list);
    ebpfMonSocketOwnersFree(none);
    free(netns);
    return found;
}

/* Whether an address is one of the network namespace that a process lives in: the kernel's routing table names them
 * (/proc/PID/net/fib_trie: the address, and in the next line "/32 host LOCAL"; fib_trie_seq_show,
 * net/ipv4/fib_trie.c). */
static int hasAddress(pid_t pid, uint32_t addr)
{
    char path[40], line[128], text[INET_ADDRSTRLEN] = "", want[INET_ADDRSTRLEN + 4];
    struct in_addr in = { .s_addr = addr };
    int found = 0, next = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/net/fib_trie", (int)pid);
    inet_ntop(AF_INET, &in, text, sizeof(text));
    snprintf(want, sizeof(want), "-- %s", text);
    f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, want);

        found = next && strstr(line, "host LOCAL");
        next = at && (at[strlen(want)] == '\n' || !at[strlen(want)]);
    }
    if (f)
        fclose(f);
    return found;
}

/* The same of IPv6, by /proc/PID/net/if_inet6 (if6_seq_show, net/ipv6/addrconf.c). */
static int hasAddress6(pid_t pid, const uint32_t addr6[4])
{
    char path[40], line[128], want[33];
    int found = 0;
    FILE *f;

    for (int i = 0; i < 16; i++)
        snprintf(want + 2 * i, 3, "%02x", ((const uint8_t *)addr6)[i]);
    snprintf(path, sizeof(path), "/proc/%d/net/if_inet6", (int)pid);
    f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof(line), f))
        found = strncmp(line, want, 32) == 0;
    if (f)
        fclose(f);
    return found;
}

/* A socket at any address accepts connections to each address of its namespace. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *s, const struct ebpfMonPeer *peer)
{
    if (s->port != peer->sport || (peer->netns && s->netns != peer->netns))
        return 0;
    if (ebpfMonIsIPv6(peer->saddr6)) {
        if (s->v6 && ebpfMonIsIPv6(s->addr6))
            return memcmp(s->addr6, peer->saddr6, sizeof(s->addr6)) == 0;
        return s->v6 && (ebpfMonIsLoopback(peer->saddr, peer->saddr6) || hasAddress6(s->pid, peer->saddr6));
    }
    if (!s->v4 || (s->addr && s->addr != peer->saddr))
        return 0;
    return s->addr || ebpfMonIsLoopback(peer->saddr, peer->saddr6) || hasAddress(s->pid, peer->saddr);
}

/* The search for the socket that accepted a connection. */
typedef struct {
    const struct ebpfMonPeer *peer;
    ebpfMonServerSocket socket; /* pid: some process of the namespace that is searched */
    unsigned long inode;        /* of the socket; 0: not found */
    int      isOwned;           /* by the process that is looked at */
} acceptorSearch;

static int compareListening(void *arg, const ebpfMonTcpRow *row)
{
    acceptorSearch *s = arg;

    setAddress(&s->socket, row);
    if (ebpfMonServerSocketAccepts(&s->socket, s->peer))
        s->inode = row->inode;
    return s->inode != 0;
}

static void compareOwned(void *arg, unsigned file, unsigned long inode)
{
    acceptorSearch *s = arg;

    (void)file;
    s->isOwned |= inode == s->inode;
}

/* Looks for the socket first, in the table of each namespace. Most servers are on other hosts, and to find the owner
 * of a socket all files of all processes are looked at. */
pid_t ebpfMonServerSocketsFindProcess(const struct ebpfMonPeer *peer)
{
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);
    uint32_t *netns = calloc(n > 0 ? (size_t)n : 1, sizeof(*netns));
    acceptorSearch s = { .peer = peer };
    pid_t found = 0;

    for (int i = 0; netns && i < n && !s.inode; i++) {
        int isDone = 0;

        netns[i] = ebpfMonProcNetns(pids[i]);
        for (int k = 0; k < i && !isDone; k++)
            isDone = netns[k] == netns[i];
        if (isDone || !netns[i] || (peer->netns && netns[i] != peer->netns))
            continue;
        s.socket.pid = pids[i];
        s.socket.netns = netns[i];
        ebpfMonTcpRows(pids[i], EBPFMON_TCP_STATE(ebpfMonTcpListen), compareListening, &s);
    }
    for (int i = n - 1; i >= 0 && s.inode && !found; i--) /* a server is younger than most */
        if (ebpfMonProcNetns(pids[i]) == s.socket.netns && ebpfMonTcpOwned(pids[i], compareOwned, &s) == 0 && s.isOwned)
            found = pids[i];
    free(netns);
    free(pids);
    return found;
}

int ebpfMonServerSocketsIsOurHost(const struct ebpfMonPeer *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = peer->addr };
    struct sockaddr_in6 address6 = { .sin6_family = AF_INET6 };
    int isIPv6 = ebpfMonIsIPv6(peer->addr6), file, isOurs;

    if (ebpfMonIsLoopback(peer->addr, peer->addr6))
        return 1;
    /* the kernel binds a socket to addresses of its own only */
    memcpy(&address6.sin6_addr, peer->addr6, sizeof(address6.sin6_addr));
    file = socket(isIPv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    isOurs = file >= 0 && bind(file, isIPv6 ? (const struct sockaddr *)&address6 : (const struct sockaddr *)&address,
                               isIPv6 ? sizeof(address6) : sizeof(address)) == 0;
    if (file >= 0)
        close(file);
    return isOurs;
}

/* The sockets that may have sent a datagram: several may be bound to one port. */
typedef struct {
    const struct ebpfMonPeer *peer;
    unsigned long inode[32];
    unsigned count;
    int      isOwned; /* one of them, by the process that is looked at */
} senderSearch;

static int addSender(void *arg, const ebpfMonTcpRow *row)
{
    senderSearch *s = arg;

    int isThere = ebpfMonIsIPv6(s->peer->addr6) ?
        row->v6 && (!ebpfMonIsIPv6(row->local6) || memcmp(row->local6, s->peer->addr6, sizeof(row->local6)) == 0) :
        row->v4 && (!row->local || row->local == s->peer->addr);

    if (isThere && row->localPort == s->peer->port)
        s->inode[s->count++] = row->inode;
    return s->count == sizeof(s->inode) / sizeof(s->inode[0]);
}

static void compareSender(void *arg, unsigned file, unsigned long inode)
{
    senderSearch *s = arg;

    (void)file;
    for (unsigned i = 0; i < s->count; i++)
        s->isOwned |= inode == s->inode[i];
}

int ebpfMonServerSocketsSends(pid_t pid, const struct ebpfMonPeer *peer)
{
    senderSearch s = { .peer = peer };

    ebpfMonUdpRows(pid, addSender, &s);
    if (s.count)
        ebpfMonTcpOwned(pid, compareSender, &s);
    return s.isOwned;
}
