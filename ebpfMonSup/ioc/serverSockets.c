/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "ioc/procInfo.h"
#include "ioc/procNetns.h"
#include "ioc/procTcp.h"
#include "ioc/serverSockets.h"

/* An open socket of one of the processes. */
typedef struct {
    unsigned long inode; /* first: what is sorted by */
    pid_t    pid;
} openSocket;

/* The search for the sockets of several processes. The listening ones of a namespace are read once. */
typedef struct {
    openSocket *open;
    size_t   count, room;
    pid_t    pid;        /* whose sockets are added to "open" */
    uint32_t netns;      /* whose table is read */
    ebpfMonServerSocket *found;
    unsigned foundCount, foundMax;
} socketSearch;

static void addOpen(void *arg, unsigned long inode)
{
    socketSearch *s = arg;

    if (ebpfMonArrayGrow(&s->open, &s->room, s->count + 1, 256, sizeof(*s->open)) == 0)
        s->open[s->count++] = (openSocket){ .inode = inode, .pid = s->pid };
}

static int compareInodes(const void *a, const void *b)
{
    unsigned long x = ((const openSocket *)a)->inode, y = ((const openSocket *)b)->inode;

    return x < y ? -1 : x > y;
}

/* The first one with this inode: a socket may be several processes'. NULL: none has it. */
static const openSocket *findOpen(const socketSearch *s, unsigned long inode)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->open[middle].inode < inode)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->count && s->open[low].inode == inode ? &s->open[low] : NULL;
}

static int addListening(void *arg, const ebpfMonTcpRow *row)
{
    socketSearch *s = arg;
    const openSocket *open;

    if (!row->v4 || !(open = findOpen(s, row->inode)))
        return 0;
    s->found[s->foundCount++] = (ebpfMonServerSocket){
        .pid = open->pid, .netns = s->netns, .addr = row->local, .port = row->localPort,
    };
    return s->foundCount == s->foundMax;
}

unsigned ebpfMonServerSocketsRead(const pid_t *pids, unsigned count, unsigned max, ebpfMonServerSocket **list)
{
    uint32_t *netns = calloc(count ? count : 1, sizeof(*netns));
    socketSearch s = { .found = calloc(max, sizeof(*s.found)), .foundMax = max };

    *list = s.found;
    if (!netns || !s.found) {
        free(netns);
        return 0;
    }
    for (unsigned i = 0; i < count; i++) {
        netns[i] = ebpfMonProcNetns(pids[i]);
        s.pid = pids[i];
        ebpfMonTcpOwned(pids[i], addOpen, &s);
    }
    if (s.count)
        qsort(s.open, s.count, sizeof(*s.open), compareInodes);
    for (unsigned i = 0; i < count && s.count && s.foundCount < max; i++) {
        unsigned k = 0;

        while (k < i && netns[k] != netns[i])
            k++;
        s.netns = netns[i];
        if (k == i && s.netns)
            ebpfMonTcpRows(pids[i], EBPFMON_TCP_STATE(ebpfMonTcpListen), addListening, &s);
    }
    free(s.open);
    free(netns);
    return s.foundCount;
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

/* A connection that is not on loopback carries no namespace, because both its ends were seen in one; there the address
 * tells. */
int ebpfMonServerSocketAccepts(const ebpfMonServerSocket *s, const struct ebpfMonPeer *peer)
{
    if (s->port != peer->sport || (peer->netns && s->netns != peer->netns) || (s->addr && s->addr != peer->saddr))
        return 0;
    return peer->netns || s->addr || hasAddress(s->pid, peer->saddr);
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

    s->socket.addr = row->local;
    s->socket.port = row->localPort;
    if (row->v4 && ebpfMonServerSocketAccepts(&s->socket, s->peer))
        s->inode = row->inode;
    return s->inode != 0;
}

static void compareOwned(void *arg, unsigned long inode)
{
    acceptorSearch *s = arg;

    s->isOwned |= inode == s->inode;
}

/* First the socket, in the table of each namespace: most servers are on other hosts, and to find whose socket it is all
 * files of all processes are looked at. */
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
