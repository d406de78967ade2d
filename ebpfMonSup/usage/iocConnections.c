/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <epicsMutex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "common/array.h"
#include "common/hash.h"
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "usage/iocConnections.h"

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

/* --- connections that nothing shows --- */

typedef struct {
    unsigned long *inode; /* of the IOC's sockets, ascending */
    size_t   inodes, inodeRoom;
    ebpfMonTcpRow *row;   /* those that are connected */
    size_t   rows, rowRoom;
    uint8_t  listening[65536 / 8]; /* by port in host byte order */
} iocSockets;

static void addOwned(void *arg, unsigned file, unsigned long inode)
{
    iocSockets *s = arg;

    if (!ebpfMonArrayGrow(&s->inode, &s->inodeRoom, s->inodes + 1, 256, sizeof(*s->inode)))
        s->inode[s->inodes++] = inode;
}

static int byInode(const void *left, const void *right)
{
    unsigned long l = *(const unsigned long *)left, r = *(const unsigned long *)right;

    return (l > r) - (l < r);
}

static int addSocket(void *arg, const ebpfMonTcpRow *row)
{
    unsigned port = ntohs(row->localPort);
    iocSockets *s = arg;

    if (!s->inodes || !bsearch(&row->inode, s->inode, s->inodes, sizeof(*s->inode), byInode))
        return 0;
    if (row->state == ebpfMonTcpListen)
        s->listening[port / 8] |= (uint8_t)(1u << port % 8);
    else if (!ebpfMonArrayGrow(&s->row, &s->rowRoom, s->rows + 1, 64, sizeof(*s->row)))
        s->row[s->rows++] = *row;
    return 0;
}

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

unsigned ebpfMonIocConnectionsCountUnseen(pid_t pid, const ebpfMonCaClients *clients,
                                          ebpfMonFollowedCircuits *followed)
{
    iocSockets *s = calloc(1, sizeof(*s));
    uint32_t netns = ebpfMonProcNetns(pid);
    unsigned unseen = 0;

    if (!s)
        return 1; /* not known is not seen */
    ebpfMonTcpOwned(pid, addOwned, s);
    if (s->inodes)
        qsort(s->inode, s->inodes, sizeof(*s->inode), byInode);
    ebpfMonTcpRows(pid, EBPFMON_TCP_STATE(ebpfMonTcpListen) | EBPFMON_TCP_STATE(ebpfMonTcpEstablished), addSocket, s);
    for (size_t i = 0; i < s->rows; i++) {
        const struct ebpfMonPeer peer = makeConnection(&s->row[i], netns);
        unsigned port = ntohs(peer.sport);

        unseen += (s->listening[port / 8] >> port % 8 & 1) && !isListed(clients, &s->row[i]) &&
                  !hasFollowedCircuits(followed, &peer);
    }
    free(s->inode);
    free(s->row);
    free(s);
    return unseen;
}
