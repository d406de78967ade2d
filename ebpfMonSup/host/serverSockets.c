/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "host/serverSockets.h"
#include "host/tcpSockets.h"

/* --- who has a listening socket --- */

/* A process that may have sockets. */
typedef struct {
    pid_t    pid;
    uint64_t start; /* 0: gone, or its files could not be read: the next time it is new */
    uint32_t netns;
    int      isNew; /* its files were not gone through before this call */
} ownerProcess;

struct ebpfMonSocketOwners {
    ebpfMonServerSocket *sockets; /* of the last call, by inode */
    size_t        socketCount;
    ownerProcess *processes;     /* of the last call, the youngest first */
    unsigned      processCount;
    uint64_t      signature;     /* of the processes and sockets of the last call; 0: nothing is known */
};

/* A socket in one call of findSocketOwners. */
typedef enum {
    socketIsMissing,  /* not known, or its process has closed it */
    socketIsNobodys,  /* none of the processes that were searched before has it */
    socketIsKept,     /* the same process still has it */
    socketIsFound     /* in this call */
} socketState;

typedef struct {
    ebpfMonServerSocket *sockets; /* the caller's, by inode */
    socketState  *state;         /* of each */
    size_t        count;
    ownerProcess *processes;     /* the youngest first */
    unsigned      processCount;
    pid_t         pid;           /* whose files are gone through */
} ownerSearch;

ebpfMonSocketOwners *ebpfMonSocketOwnersNew(void)
{
    return calloc(1, sizeof(ebpfMonSocketOwners));
}

void ebpfMonSocketOwnersForget(ebpfMonSocketOwners *owners)
{
    free(owners->sockets);
    free(owners->processes);
    memset(owners, 0, sizeof(*owners));
}

void ebpfMonSocketOwnersFree(ebpfMonSocketOwners *owners)
{
    if (!owners)
        return;
    ebpfMonSocketOwnersForget(owners);
    free(owners);
}

/* The kernel lists sockets in the same order each time. */
static uint64_t signSockets(const pid_t *pids, unsigned count, const ebpfMonServerSocket *sockets, size_t socketCount)
{
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, pids, count * sizeof(*pids));

    for (size_t i = 0; i < socketCount; i++) {
        const uint64_t socket[] = { sockets[i].inode, sockets[i].netns };

        hash = ebpfMonHashFnv64(hash, socket, sizeof(socket));
    }
    return hash ? hash : 1;
}

/* Nonzero: the last call of findSocketOwners was for these processes and sockets, in the same order, and nothing
 * was forgotten since. */
static int socketOwnersKnow(const ebpfMonSocketOwners *owners, const pid_t *pids, unsigned count,
                            const ebpfMonServerSocket *sockets, size_t socketCount)
{
    return owners->signature == signSockets(pids, count, sockets, socketCount);
}

static int compareSocketInodes(const void *a, const void *b)
{
    unsigned long x = ((const ebpfMonServerSocket *)a)->inode, y = ((const ebpfMonServerSocket *)b)->inode;

    return (x > y) - (x < y);
}

/* The youngest first; of two that were started in the same clock tick, the one with the larger pid. */
static int compareAges(const void *a, const void *b)
{
    const ownerProcess *x = a, *y = b;

    return x->start != y->start ? (x->start < y->start) - (x->start > y->start) : (x->pid < y->pid) - (x->pid > y->pid);
}

static ebpfMonServerSocket *findSocket(ebpfMonServerSocket *sockets, size_t count, unsigned long inode)
{
    const ebpfMonServerSocket key = { .inode = inode };

    return count ? bsearch(&key, sockets, count, sizeof(key), compareSocketInodes) : NULL;
}

static int isProcessKnown(const ebpfMonSocketOwners *owners, const ownerProcess *p)
{
    for (unsigned i = 0; i < owners->processCount; i++)
        if (owners->processes[i].pid == p->pid && owners->processes[i].start == p->start)
            return 1;
    return 0;
}

static int isProcessListed(const ownerSearch *s, pid_t pid)
{
    for (unsigned i = 0; i < s->processCount; i++)
        if (s->processes[i].pid == pid)
            return 1;
    return 0;
}

static void listProcesses(const ebpfMonSocketOwners *owners, ownerSearch *s, const pid_t *pids, const uint32_t *netns)
{
    for (unsigned i = 0; i < s->processCount; i++) {
        ownerProcess *p = &s->processes[i];

        *p = (ownerProcess){ .pid = pids[i], .start = ebpfMonProcStart(pids[i]), .netns = netns[i] };
        p->isNew = p->start && !isProcessKnown(owners, p);
    }
    if (s->processCount)
        qsort(s->processes, s->processCount, sizeof(*s->processes), compareAges);
}

/* Takes over what is known and still true. */
static void keepOwners(const ebpfMonSocketOwners *owners, ownerSearch *s)
{
    for (size_t i = 0; i < s->count; i++) {
        ebpfMonServerSocket *socket = &s->sockets[i];
        const ebpfMonServerSocket *old = findSocket(owners->sockets, owners->socketCount, socket->inode);

        socket->pid = 0;
        s->state[i] = socketIsMissing;
        if (!old || old->netns != socket->netns)
            continue;
        if (!old->pid) {
            s->state[i] = socketIsNobodys;
        } else if (isProcessListed(s, old->pid) && ebpfMonTcpHasSocket(old->pid, old->file, socket->inode)) {
            socket->pid = old->pid;
            socket->file = old->file;
            s->state[i] = socketIsKept;
        }
    }
}

static void noteOwner(void *arg, unsigned file, unsigned long inode)
{
    ownerSearch *s = arg;
    ebpfMonServerSocket *socket = findSocket(s->sockets, s->count, inode);

    if (!socket || socket->pid)
        return;
    socket->pid = s->pid;
    socket->file = file;
    s->state[socket - s->sockets] = socketIsFound;
}

/* Whether one of the sockets that nobody has may be found in this process. */
static int mayOwn(const ownerSearch *s, const ownerProcess *p)
{
    for (size_t i = 0; i < s->count; i++)
        if (s->state[i] == socketIsMissing ? p->isNew || !p->netns || p->netns == s->sockets[i].netns
                                           : s->state[i] == socketIsNobodys && p->isNew)
            return 1;
    return 0;
}

/* Goes through the files of the processes that may have one of the sockets. Returns -1 if those of a process could not
 * be read. */
static int searchProcesses(ownerSearch *s)
{
    int result = 0;

    for (int isNew = 1; isNew >= 0; isNew--)
        for (unsigned i = 0; i < s->processCount; i++) {
            ownerProcess *p = &s->processes[i];

            s->pid = p->pid;
            if (!p->start || p->isNew != isNew || !mayOwn(s, p) || ebpfMonTcpOwned(p->pid, noteOwner, s) == 0)
                continue;
            p->start = 0;
            result = -1;
        }
    return result;
}

/* A child that was forked has the files of its parent, at the same numbers. The parent is the server. */
static void preferOldest(ownerSearch *s, size_t index)
{
    ebpfMonServerSocket *socket = &s->sockets[index];

    for (unsigned i = s->processCount; i-- > 0;) {
        const ownerProcess *p = &s->processes[i];

        if (p->pid == socket->pid)
            return;
        if (p->start && (p->isNew || s->state[index] == socketIsFound)
            && ebpfMonTcpHasSocket(p->pid, socket->file, socket->inode)) {
            socket->pid = p->pid;
            return;
        }
    }
}

/* "processes" is malloc'ed, and belongs to "owners" from now on. */
static void rememberSearch(ebpfMonSocketOwners *owners, const ownerSearch *s)
{
    ebpfMonSocketOwnersForget(owners);
    owners->processes = s->processes;
    owners->processCount = s->processCount;
    owners->sockets = malloc((s->count ? s->count : 1) * sizeof(*owners->sockets));
    if (!owners->sockets) {
        ebpfMonSocketOwnersForget(owners);
        return;
    }
    if (s->count)
        memcpy(owners->sockets, s->sockets, s->count * sizeof(*owners->sockets));
    owners->socketCount = s->count;
}

/* Sets "pid" and "file" of each socket, and sorts them by inode; the rest is the caller's. "sockets" are all
 * that listen in some of the namespaces of the processes. "netns": the namespace of each process, 0: not known. Without
 * memory nobody has a socket, and all are looked for again the next time. */
static void findSocketOwners(ebpfMonSocketOwners *owners, const pid_t *pids, const uint32_t *netns, unsigned count,
                             ebpfMonServerSocket *sockets, size_t socketCount)
{
    uint64_t signature = signSockets(pids, count, sockets, socketCount);
    ownerSearch s = { .sockets = sockets, .count = socketCount, .processCount = count,
                      .state = calloc(socketCount ? socketCount : 1, sizeof(*s.state)),
                      .processes = calloc(count ? count : 1, sizeof(*s.processes)) };
    int result;

    for (size_t i = 0; i < socketCount; i++)
        sockets[i].pid = 0;
    if (!s.state || !s.processes) {
        ebpfMonSocketOwnersForget(owners);
        free(s.state);
        free(s.processes);
        return;
    }
    if (socketCount)
        qsort(sockets, socketCount, sizeof(*sockets), compareSocketInodes);
    listProcesses(owners, &s, pids, netns);
    keepOwners(owners, &s);
    result = searchProcesses(&s);
    for (size_t i = 0; i < socketCount; i++)
        if (sockets[i].pid)
            preferOldest(&s, i);
    rememberSearch(owners, &s);
    if (owners->sockets && result == 0)
        owners->signature = signature;
    free(s.state);
}

/* --- who listens --- */

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
    if (socketOwnersKnow(owners, pids, count, s.sockets, s.count)) {
        free(s.sockets);
        return -1;
    }
    findSocketOwners(owners, pids, netns, count, s.sockets, s.count);
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

/* A socket at any address accepts connections to each address of its namespace. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *s, const struct ebpfMonPeer *peer)
{
    if (s->port != peer->sport || (peer->netns && s->netns != peer->netns))
        return 0;
    if (ebpfMonIsIPv6(peer->saddr6)) {
        if (s->v6 && ebpfMonIsIPv6(s->addr6))
            return memcmp(s->addr6, peer->saddr6, sizeof(s->addr6)) == 0;
        return s->v6 && (ebpfMonIsLoopback(peer->saddr, peer->saddr6) || ebpfMonTcpFindDevice(s->pid, peer->saddr6));
    }
    if (!s->v4 || (s->addr && s->addr != peer->saddr))
        return 0;
    return s->addr || ebpfMonIsLoopback(peer->saddr, peer->saddr6) || hasAddress(s->pid, peer->saddr);
}

/* --- who listens on this host --- */

#define HOST_PART 20                          /* looks take one part of the time in so many … */
#define HOST_SAVED_NS (4 * EBPFMON_SECOND_NS) /* … of a time that is saved for as long */

typedef struct {
    ebpfMonServerSocket socket; /* pid: who has it, or some process of its namespace */
    int isOwned;                /* nonzero: the pid is known to have it; -1: no process has it */
} hostSocket;

struct ebpfMonHostSockets {
    hostSocket *list;
    size_t      count;
    uint64_t    paid; /* monotonic ns: the time for the looks so far has passed then */
};

ebpfMonHostSockets *ebpfMonHostSocketsNew(void)
{
    return calloc(1, sizeof(ebpfMonHostSockets));
}

void ebpfMonHostSocketsFree(ebpfMonHostSockets *host)
{
    if (!host)
        return;
    free(host->list);
    free(host);
}

static void keepHostOwner(const ebpfMonHostSockets *before, hostSocket *h)
{
    for (size_t i = 0; i < before->count; i++) {
        const hostSocket *old = &before->list[i];

        if (old->isOwned <= 0 || old->socket.inode != h->socket.inode || old->socket.netns != h->socket.netns)
            continue;
        h->socket.pid = old->socket.pid;
        h->socket.file = old->socket.file;
        h->isOwned = 1;
    }
}

/* Lists all that listen in the namespace "only"; 0: in each of this host. */
static void readHost(ebpfMonHostSockets *host, uint32_t only)
{
    listeningSearch s = { .count = 0 };
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);
    uint32_t *netns = calloc(n > 0 ? (size_t)n : 1, sizeof(*netns));
    hostSocket *list;

    for (int i = 0; netns && i < n; i++) {
        size_t first = s.count;
        int isDone = 0;

        netns[i] = ebpfMonProcNetns(pids[i]);
        for (int k = 0; k < i && !isDone; k++)
            isDone = netns[k] == netns[i];
        if (isDone || !netns[i] || (only && netns[i] != only))
            continue;
        s.netns = netns[i];
        ebpfMonTcpRows(pids[i], EBPFMON_TCP_STATE(ebpfMonTcpListen), addListening, &s);
        for (size_t k = first; k < s.count; k++)
            s.sockets[k].pid = pids[i];
        if (s.count == first && ebpfMonProcNetns(pids[i]) != netns[i])
            netns[i] = 0; /* it has ended: the next process of this namespace tells */
    }
    list = calloc(s.count ? s.count : 1, sizeof(*list));
    for (size_t i = 0; list && i < s.count; i++) {
        list[i].socket = s.sockets[i];
        keepHostOwner(host, &list[i]);
    }
    free(host->list);
    host->list = list;
    host->count = list ? s.count : 0;
    free(s.sockets);
    free(netns);
    free(pids);
}

typedef struct {
    unsigned long inode;
    int      isFound;
    unsigned file;
} ownedSearch;

static void compareOwned(void *arg, unsigned file, unsigned long inode)
{
    ownedSearch *s = arg;

    if (inode != s->inode)
        return;
    s->isFound = 1;
    s->file = file;
}

/* All files of all processes of the namespace are looked at. */
static void findHostOwner(hostSocket *h)
{
    ownedSearch s = { .inode = h->socket.inode };
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);

    h->isOwned = -1;
    for (int i = n - 1; i >= 0 && !s.isFound; i--) /* a server is younger than most */
        if (ebpfMonProcNetns(pids[i]) == h->socket.netns && ebpfMonTcpOwned(pids[i], compareOwned, &s) == 0 &&
            s.isFound) {
            h->socket.pid = pids[i];
            h->socket.file = s.file;
            h->isOwned = 1;
        }
    free(pids);
}

static hostSocket *findHostSocket(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer)
{
    for (size_t i = 0; i < host->count; i++)
        if (ebpfMonServerSocketAccepts(&host->list[i].socket, peer))
            return &host->list[i];
    return NULL;
}

static void payLook(ebpfMonHostSockets *host, uint64_t begin)
{
    uint64_t end = ebpfMonClockMonotonic(), saved = end > HOST_SAVED_NS ? end - HOST_SAVED_NS : 0;

    host->paid = (host->paid > saved ? host->paid : saved) + HOST_PART * (end - begin);
}

pid_t ebpfMonHostSocketsFind(ebpfMonHostSockets *host, const struct ebpfMonPeer *peer, ebpfMonHostLook *look)
{
    uint64_t begin = ebpfMonClockMonotonic();
    hostSocket *h;

    if (!look->isRead && (begin >= host->paid || look->isUrgent)) {
        readHost(host, 0);
        payLook(host, begin);
        look->isRead = 1;
    }
    look->again = look->isRead ? 0 : host->paid;
    h = findHostSocket(host, peer);
    if (h && h->isOwned > 0 && !ebpfMonTcpHasSocket(h->socket.pid, h->socket.file, h->socket.inode))
        h->isOwned = 0;
    if (h && !h->isOwned) {
        begin = ebpfMonClockMonotonic();
        findHostOwner(h);
        payLook(host, begin);
    }
    return h && h->isOwned > 0 ? h->socket.pid : 0;
}

pid_t ebpfMonServerSocketsFindProcess(const struct ebpfMonPeer *peer)
{
    ebpfMonHostSockets host = { .list = NULL };
    hostSocket *h;
    pid_t pid = 0;

    readHost(&host, peer->netns);
    h = findHostSocket(&host, peer);
    if (h) {
        findHostOwner(h);
        pid = h->isOwned > 0 ? h->socket.pid : 0;
    }
    free(host.list);
    return pid;
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
