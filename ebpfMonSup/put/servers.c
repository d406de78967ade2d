/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "put/servers.h"
#include "ioc/procInfo.h"
#include "ioc/procNetns.h"
#include "ioc/procTcp.h"

#define LISTENERS 1024
#define KNOWN     1024         /* servers remembered, by hash */
#define PLACES    8            /* … each in one of so many */
#define KNOWN_NS  10000000000ull /* after this a server may be another process */

typedef struct {
    pid_t    pid;
    uint32_t netns, addr;
    uint16_t port;
    ebpfMonServer server;
} listener;

typedef struct {
    uint32_t netns, addr;
    uint16_t port;
    uint64_t at, used; /* monotonic ns: looked for, asked for; 0: never */
    int      ioc;  /* found among the listeners of IOCs */
    ebpfMonServer server;
} known;

static listener listeners[LISTENERS]; /* of IOCs */
static unsigned listenerCount;
static known    servers[KNOWN];

typedef struct {
    pid_t    pid;
    uint32_t netns;
    ebpfMonServer server;
} ioc;

/* A write is only sure to be seen inside with all the ways in watched. */
static int watched(const ebpfMonTarget *t)
{
    return (t->probesOn & EBPFMON_BIT(ebpfMonProgPut)) && (t->probesOn & EBPFMON_BIT(ebpfMonProgPutField));
}

/* All sockets of all IOCs. A namespace's table is read once: the kernel goes through its whole hash for it, which takes
 * milliseconds, and meanwhile no packet is looked at. */
typedef struct {
    struct { unsigned long inode; const ioc *ioc; } *list;
    size_t   count, room;
    const ioc *ioc;      /* whose are added */
    uint32_t netns;      /* whose table is read */
} owned;

static void fill(ebpfMonServer *s, const ebpfMonTarget *t)
{
    s->iocId = watched(t) ? t->iocId : 0;
    s->off = t->asked == ebpfMonLevelOff;
    snprintf(s->name, sizeof(s->name), "%s", t->name);
}

/* IOCs as they are watched now; malloc'ed. */
static unsigned iocs(ioc **list)
{
    unsigned n = 0, size = 0;

    *list = NULL;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t; t = t->next)
        size += !t->gone;
    if (size)
        *list = calloc(size, sizeof(**list));
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); *list && t && n < size; t = t->next) {
        ioc *i = &(*list)[n];

        if (t->gone)
            continue;
        i->pid = t->pid;
        fill(&i->server, t);
        n++;
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return n;
}

int ebpfMonServersMayHaveMissed(uint32_t iocId, uint64_t at, int slow)
{
    ebpfMonTarget *t;
    int missed;

    ebpfMonTargetsLock(ebpfMonTheTargets);
    t = ebpfMonTargetsFindById(ebpfMonTheTargets, iocId);
    missed = t && !t->gone && (slow || !watched(t) || t->putsSince > at); /* of one that has ended it was seen to the end */
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    return missed;
}

static void addOwned(void *arg, unsigned long inode)
{
    owned *o = arg;

    if (o->count == o->room) {
        size_t room = o->room ? 2 * o->room : 256;
        void *more = realloc(o->list, room * sizeof(*o->list));

        if (!more)
            return;
        o->list = more;
        o->room = room;
    }
    o->list[o->count].inode = inode;
    o->list[o->count++].ioc = o->ioc;
}

/* The inode comes first in what is sorted. */
static int byInode(const void *a, const void *b)
{
    unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

    return x < y ? -1 : x > y;
}

static int addListener(void *arg, const ebpfMonTcpRow *row)
{
    owned *o = arg;
    const ioc *i;
    size_t low = 0, high = o->count;

    if (row->state != ebpfMonTcpListen || !row->v4)
        return 0;
    while (low < high) { /* the first with this inode: a socket may be several processes' */
        size_t middle = low + (high - low) / 2;

        if (o->list[middle].inode < row->inode)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == o->count || o->list[low].inode != row->inode)
        return 0;
    i = o->list[low].ioc;
    listeners[listenerCount++] = (listener){ .pid = i->pid, .netns = o->netns, .addr = row->local,
                                             .port = row->localPort, .server = i->server };
    return listenerCount == LISTENERS;
}

void ebpfMonServersRefresh(void (*port)(void *arg, uint32_t netns, uint16_t port), void *arg)
{
    owned o = { .list = NULL };
    ioc *list;
    unsigned n = iocs(&list);

    listenerCount = 0;
    for (unsigned i = 0; i < n; i++) {
        list[i].netns = ebpfMonProcNetns(list[i].pid);
        o.ioc = &list[i];
        ebpfMonTcpOwned(list[i].pid, addOwned, &o);
    }
    if (o.count)
        qsort(o.list, o.count, sizeof(*o.list), byInode);
    for (unsigned i = 0; i < n && o.count && listenerCount < LISTENERS; i++) {
        unsigned k = 0;

        while (k < i && list[k].netns != list[i].netns)
            k++;
        o.netns = list[i].netns;
        if (k == i && o.netns)
            ebpfMonTcpRows(list[i].pid, addListener, &o);
    }
    for (unsigned i = 0; i < listenerCount; i++)
        port(arg, listeners[i].netns, ntohs(listeners[i].port));
    free(o.list);
    free(list);
    /* those of IOCs may be others now; the rest is looked for again when its time has come */
    for (unsigned i = 0; i < KNOWN; i++)
        if (servers[i].ioc)
            servers[i].at = 0;
}

/* Whether an address is one of the network namespace that a process lives in: the kernel's routing table names them
 * (/proc/PID/net/fib_trie: the address, and in the next line "/32 host LOCAL"). */
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

/* Whether a process in "netns" that listens on "addr" and "port" is the server of this connection. A connection that is
 * not on loopback carries no namespace, for both ends' have seen it: there the address tells. */
static int serves(pid_t pid, uint32_t netns, uint32_t addr, uint16_t port, const struct ebpfMonPeer *peer)
{
    if (port != peer->sport || (peer->netns && netns != peer->netns) || (addr && addr != peer->saddr))
        return 0;
    return peer->netns || addr || hasAddress(pid, peer->saddr);
}

typedef struct {
    const struct ebpfMonPeer *peer;
    pid_t    pid;     /* of a process in the namespace that is looked at */
    uint32_t netns;
    unsigned long inode; /* of the socket that listens there, 0: none */
    int      owned;
} search;

static int isListener(void *arg, const ebpfMonTcpRow *row)
{
    search *s = arg;

    if (row->state == ebpfMonTcpListen && row->v4 && serves(s->pid, s->netns, row->local, row->localPort, s->peer))
        s->inode = row->inode;
    return s->inode != 0;
}

static void isOwner(void *arg, unsigned long inode)
{
    search *s = arg;

    s->owned |= inode == s->inode;
}

/* The process that listens there; 0: none on this host. First the socket, by a look at each namespace's table: most
 * servers are on other hosts, and whose socket it is takes a look at all the files of all processes. */
static pid_t listenerOf(const struct ebpfMonPeer *peer)
{
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);
    uint32_t *netns = calloc(n > 0 ? (size_t)n : 1, sizeof(*netns));
    search s = { .peer = peer };
    pid_t found = 0;

    for (int i = 0; netns && i < n && !s.inode; i++) {
        int seen = 0;

        netns[i] = ebpfMonProcNetns(pids[i]);
        for (int k = 0; k < i && !seen; k++)
            seen = netns[k] == netns[i];
        if (seen || !netns[i] || (peer->netns && netns[i] != peer->netns))
            continue;
        s.pid = pids[i];
        s.netns = netns[i];
        ebpfMonTcpRows(pids[i], isListener, &s);
    }
    for (int i = n - 1; i >= 0 && s.inode && !found; i--) /* a server is younger than most */
        if (ebpfMonProcNetns(pids[i]) == s.netns && ebpfMonTcpOwned(pids[i], isOwner, &s) == 0 && s.owned)
            found = pids[i];
    free(netns);
    free(pids);
    return found;
}

/* Its place in the table; another one's that was not asked for for longest makes room. */
static known *placeOf(const struct ebpfMonPeer *peer)
{
    unsigned h = (peer->saddr * 2654435761u ^ peer->sport * 40503u ^ peer->netns) % KNOWN;
    known *oldest = &servers[h];

    for (unsigned i = 0; i < PLACES; i++) {
        known *k = &servers[(h + i) % KNOWN];

        if (k->used && k->addr == peer->saddr && k->port == peer->sport && k->netns == peer->netns)
            return k;
        if (k->used < oldest->used)
            oldest = k;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->addr = peer->saddr;
    oldest->port = peer->sport;
    oldest->netns = peer->netns;
    return oldest;
}

static void look(known *k, const struct ebpfMonPeer *peer)
{
    char text[INET_ADDRSTRLEN] = "?";
    struct in_addr in = { .s_addr = peer->saddr };
    ebpfMonTarget *t;
    pid_t pid;

    for (unsigned i = 0; i < listenerCount; i++) {
        const listener *l = &listeners[i];

        if (!serves(l->pid, l->netns, l->addr, l->port, peer))
            continue;
        k->ioc = 1;
        k->server = l->server;
        return;
    }
    pid = listenerOf(peer);
    if (!pid && k->server.name[0])
        return; /* it is gone: what is under way was for it */
    memset(&k->server, 0, sizeof(k->server));
    k->ioc = 0;
    if (pid) {
        /* an IOC that has just begun to serve */
        ebpfMonTargetsLock(ebpfMonTheTargets);
        t = ebpfMonTargetsFindByPid(ebpfMonTheTargets, pid);
        k->ioc = t != NULL;
        if (t)
            fill(&k->server, t);
        ebpfMonTargetsUnlock(ebpfMonTheTargets);
        k->server.off |= !t && pid == getpid(); /* ourselves, unless that was asked for: then we are a target */
    }
    if (!k->ioc && (!pid || ebpfMonProcIocName(pid, k->server.name, sizeof(k->server.name)))) {
        inet_ntop(AF_INET, &in, text, sizeof(text));
        snprintf(k->server.name, sizeof(k->server.name), "%s:%u", text, ntohs(peer->sport));
    }
}

const ebpfMonServer *ebpfMonServersFind(const struct ebpfMonPeer *peer, uint64_t now)
{
    known *k = placeOf(peer);

    k->used = now;
    if (!k->at || now - k->at >= KNOWN_NS) {
        k->at = now;
        look(k, peer);
    }
    return &k->server;
}
