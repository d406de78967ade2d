/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <epicsMutex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "clients/iocConnections.h"

/* --- circuits that packets show --- */

#define BUCKETS  1024
#define CIRCUITS 4096 /* as many as a wire has; more count as not followed */

typedef struct circuit {
    struct circuit *next;
    struct ebpfMonPeer peer;
} circuit;

struct ebpfMonFollowedCircuits {
    epicsMutexId lock; /* guards the rest */
    circuit *bucket[BUCKETS];
    unsigned count;
};

ebpfMonFollowedCircuits *ebpfMonFollowedCircuitsNew(void)
{
    ebpfMonFollowedCircuits *f = calloc(1, sizeof(*f));

    if (f)
        f->lock = epicsMutexMustCreate();
    return f;
}

void ebpfMonFollowedCircuitsFree(ebpfMonFollowedCircuits *f)
{
    if (!f)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        while (f->bucket[i]) {
            circuit *c = f->bucket[i];

            f->bucket[i] = c->next;
            free(c);
        }
    epicsMutexDestroy(f->lock);
    free(f);
}

/* Where the circuit is in its bucket, or the end of the bucket. */
static circuit **findCircuit(ebpfMonFollowedCircuits *f, const struct ebpfMonPeer *peer)
{
    circuit **at = &f->bucket[ebpfMonHashMix(((uint64_t)peer->addr << 32 | peer->saddr) ^
                                             ((uint64_t)peer->port << 16 | peer->sport)) % BUCKETS];

    while (*at && memcmp(&(*at)->peer, peer, sizeof(*peer)) != 0)
        at = &(*at)->next;
    return at;
}

void ebpfMonFollowedCircuitsAdd(ebpfMonFollowedCircuits *f, const ebpfMonWireEvent *ev)
{
    int isOpened = ev->kind == ebpfMonWireOpened && (ev->first.seq[0] || ev->first.seq[1]);
    circuit **at;

    if (!isOpened && ev->kind != ebpfMonWireGap && ev->kind != ebpfMonWireUnread && ev->kind != ebpfMonWireGivenUp &&
        ev->kind != ebpfMonWireClosed)
        return;
    epicsMutexMustLock(f->lock);
    at = findCircuit(f, &ev->peer);
    if (isOpened && !*at && f->count < CIRCUITS && (*at = calloc(1, sizeof(**at)))) {
        (*at)->peer = ev->peer;
        f->count++;
    } else if (!isOpened && *at) {
        circuit *c = *at;

        *at = c->next;
        free(c);
        f->count--;
    }
    epicsMutexUnlock(f->lock);
}

static int hasFollowedCircuits(ebpfMonFollowedCircuits *f, const struct ebpfMonPeer *peer)
{
    int has;

    epicsMutexMustLock(f->lock);
    has = *findCircuit(f, peer) != NULL;
    epicsMutexUnlock(f->lock);
    return has;
}

/* --- the sockets of an IOC --- */

typedef struct {
    unsigned long *inode; /* ascending */
    size_t   inodes, room, rowRoom;
    ebpfMonIocSockets *sockets;
} socketReader;

static void addOwned(void *arg, unsigned file, unsigned long inode)
{
    socketReader *r = arg;

    if (!ebpfMonArrayGrow(&r->inode, &r->room, r->inodes + 1, 256, sizeof(*r->inode)))
        r->inode[r->inodes++] = inode;
}

static int byInode(const void *left, const void *right)
{
    unsigned long l = *(const unsigned long *)left, r = *(const unsigned long *)right;

    return (l > r) - (l < r);
}

static int addSocket(void *arg, const ebpfMonTcpRow *row)
{
    unsigned port = ntohs(row->localPort);
    socketReader *r = arg;
    ebpfMonIocSockets *s = r->sockets;

    if (!r->inodes || !bsearch(&row->inode, r->inode, r->inodes, sizeof(*r->inode), byInode))
        return 0;
    if (row->state == ebpfMonTcpListen)
        s->listening[port / 8] |= (uint8_t)(1u << port % 8);
    else if (!ebpfMonArrayGrow(&s->row, &r->rowRoom, s->rows + 1, 64, sizeof(*s->row)))
        s->row[s->rows++] = *row;
    return 0;
}

ebpfMonIocSockets *ebpfMonIocSocketsRead(pid_t pid)
{
    ebpfMonIocSockets *s = calloc(1, sizeof(*s));
    socketReader r = { .sockets = s };

    if (!s)
        return NULL;
    s->netns = ebpfMonProcNetns(pid);
    ebpfMonTcpOwned(pid, addOwned, &r);
    if (r.inodes)
        qsort(r.inode, r.inodes, sizeof(*r.inode), byInode);
    ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen) | EBPFMON_TCP_STATE(ebpfMonTcpEstablished), addSocket, &r);
    free(r.inode);
    return s;
}

void ebpfMonIocSocketsFree(ebpfMonIocSockets *s)
{
    if (!s)
        return;
    free(s->row);
    free(s);
}

/* --- connections that nothing shows --- */

static int isListed(const ebpfMonCaClients *clients, const ebpfMonTcpRow *row)
{
    for (unsigned i = 0; clients && row->v4 && i < clients->clients; i++)
        if (clients->client[i].addr == row->remote && clients->client[i].port == row->remotePort)
            return 1;
    return 0;
}

static struct ebpfMonPeer makeConnection(const ebpfMonTcpRow *row, uint32_t netns)
{
    struct ebpfMonPeer peer = { .addr = row->remote, .saddr = row->local, .port = row->remotePort,
                                .sport = row->localPort, .netns = netns };

    if (!row->v4) {
        memcpy(peer.addr6, row->remote6, sizeof(peer.addr6));
        memcpy(peer.saddr6, row->local6, sizeof(peer.saddr6));
        peer.addr = ebpfMonShortAddress(peer.addr6);
        peer.saddr = ebpfMonShortAddress(peer.saddr6);
    }
    return peer;
}

unsigned ebpfMonIocSocketsCountUnseen(const ebpfMonIocSockets *s, const ebpfMonCaClients *clients,
                                      ebpfMonFollowedCircuits *followed)
{
    unsigned unseen = 0;

    if (!s)
        return 1; /* not known is not seen */
    for (size_t i = 0; i < s->rows; i++) {
        const struct ebpfMonPeer peer = makeConnection(&s->row[i], s->netns);
        unsigned port = ntohs(peer.sport);

        unseen += (s->listening[port / 8] >> port % 8 & 1) && !isListed(clients, &s->row[i]) &&
                  !hasFollowedCircuits(followed, &peer);
    }
    return unseen;
}

/* --- what pvxs knows of them --- */

void ebpfMonHiddenClientsFree(ebpfMonHiddenClients *hidden)
{
    if (!hidden)
        return;
    ebpfMonPvxsClientsFree(hidden->all);
    free(hidden->client);
    free(hidden);
}

static const ebpfMonPvxsClient *findPvxsClient(const ebpfMonPvxsClients *all, const struct ebpfMonPeer *peer)
{
    char end[64];

    ebpfMonPeerTextEnd(peer->addr, peer->addr6, peer->port, end, sizeof(end));
    for (unsigned i = 0; i < all->clients; i++)
        if (strcmp(all->client[i].peer, end) == 0)
            return &all->client[i];
    return NULL;
}

static uint64_t findSeenSince(const ebpfMonHiddenClients *before, const struct ebpfMonPeer *peer)
{
    for (unsigned i = 0; before && i < before->clients; i++)
        if (memcmp(&before->client[i].peer, peer, sizeof(*peer)) == 0)
            return before->client[i].since;
    return before ? ebpfMonClockMonotonic() : 0;
}

static void setHiddenClient(ebpfMonHiddenClient *c, ebpfMonPutClients *putClients)
{
    int isProved = strcmp(c->is->method, "x509") == 0;

    ebpfMonPutClientsFind(putClients, &c->peer, NULL, isProved ? "" : c->is->account, "", &c->who);
    if (!isProved)
        return;
    snprintf(c->who.user, sizeof(c->who.user), EBPFMON_BY_CERTIFICATE "%.34s", c->is->account);
    ebpfMonTextCopy(c->who.authority, sizeof(c->who.authority), c->is->authority);
}

/* Those that pvxs lists and packets do not show. */
static void listHidden(ebpfMonHiddenClients *h, const ebpfMonIocSockets *s, ebpfMonFollowedCircuits *followed,
                       ebpfMonPutClients *putClients, const ebpfMonHiddenClients *before)
{
    size_t room = 0;

    for (size_t i = 0; i < s->rows; i++) {
        const struct ebpfMonPeer peer = makeConnection(&s->row[i], s->netns);
        const ebpfMonPvxsClient *is = findPvxsClient(h->all, &peer);

        if (!is || hasFollowedCircuits(followed, &peer) ||
            ebpfMonArrayGrow(&h->client, &room, h->clients + 1, 16, sizeof(*h->client)))
            continue;
        h->client[h->clients] = (ebpfMonHiddenClient){ .peer = peer, .is = is, .since = findSeenSince(before, &peer),
                                                       .bytes = -1 };
        setHiddenClient(&h->client[h->clients++], putClients);
    }
}

ebpfMonHiddenClients *ebpfMonHiddenClientsFind(ebpfMonPvxsClients *all, const ebpfMonIocSockets *sockets,
                                               ebpfMonFollowedCircuits *followed, ebpfMonPutClients *putClients,
                                               const ebpfMonHiddenClients *before)
{
    ebpfMonHiddenClients *h = all && sockets ? calloc(1, sizeof(*h)) : NULL;

    if (!h) {
        ebpfMonPvxsClientsFree(all);
        return NULL;
    }
    h->all = all;
    listHidden(h, sockets, followed, putClients, before);
    return h;
}

static void noteBytes(void *arg, const ebpfMonTcpBytes *bytes)
{
    ebpfMonHiddenClients *h = arg;

    for (unsigned i = 0; i < h->clients; i++) {
        ebpfMonHiddenClient *c = &h->client[i];

        if (c->peer.port == bytes->remotePort && c->peer.sport == bytes->localPort &&
            c->peer.addr == bytes->remote && c->peer.saddr == bytes->local)
            c->bytes = (int64_t)bytes->sent;
    }
}

/* A connection may have been followed until packets of it were lost. */
static void setBegin(ebpfMonHiddenClients *h, const ebpfMonPacketClient *c)
{
    for (unsigned i = 0; i < h->clients; i++)
        if (memcmp(&h->client[i].peer, &c->peer, sizeof(c->peer)) == 0)
            h->client[i].since = c->openedAt;
}

void ebpfMonHiddenClientsComplete(ebpfMonHiddenClients *h, pid_t pid, uint32_t iocId, ebpfMonPacketClients *packets)
{
    ebpfMonTcpBytesRead(pid, noteBytes, h);
    if (!packets)
        return;
    ebpfMonPacketClientsLock(packets);
    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(packets, NULL); c;
         c = ebpfMonPacketClientsNext(packets, c))
        if (c->iocId == iocId && c->isWhole)
            setBegin(h, c);
    ebpfMonPacketClientsUnlock(packets);
}
