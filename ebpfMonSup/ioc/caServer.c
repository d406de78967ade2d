/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "host/foreign.h"
#include "host/memory.h"
#include "ioc/baseLayout.h"
#include "ioc/caServer.h"

/* --- how many clients and channels --- */

/*
 * rsrv keeps its TCP clients in the list clientQ (caservertask.c, req_server; camsgtask.c takes them out), and each
 * client its channels in one of two lists (server.h, enum rsrvChanState). casr counts the same: log_one_client adds
 * the lengths of both. The server goes on meanwhile. What changes while we read it is read again.
 */

#define CLIENTS_MAX  20000
#define CHANNELS_MAX 50000000
#define TRIES        3
#define SECONDS      0.25
#define HEAD_MAX     256 /* of a struct client */

static int countClients(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *o, unsigned *clients, unsigned *channels)
{
    uint16_t one = o->client.chanList, other = o->client.chanPendingUpdateARList, far = one > other ? one : other;
    size_t size = far + sizeof(struct layoutList);
    struct layoutList q, chans, pending;
    struct layoutNode node;
    char head[HEAD_MAX];
    uint64_t at, before = 0, sum = 0;
    int32_t n;

    if (size > sizeof(head) || ebpfMonMemReadNow(pid, clientQ, &q, sizeof(q)) || q.count < 0 || q.count > CLIENTS_MAX)
        return -1;
    at = q.first;
    for (n = 0; at && n < q.count; n++) {
        if (at % sizeof(uint64_t) || ebpfMonMemReadNow(pid, at, head, size))
            return -1;
        memcpy(&node, head, sizeof(node));
        memcpy(&chans, head + one, sizeof(chans));
        memcpy(&pending, head + other, sizeof(pending));
        if (node.prev != before || chans.count < 0 || pending.count < 0 || chans.count > CHANNELS_MAX ||
            pending.count > CHANNELS_MAX)
            return -1;
        sum += (uint64_t)chans.count + (uint64_t)pending.count;
        before = at;
        at = node.next;
    }
    if (at || n != q.count || before != q.last || sum > UINT32_MAX)
        return -1;
    *clients = (unsigned)n;
    *channels = (unsigned)sum;
    return 0;
}

/* One job for all clients, because a job for each read would cost ten times the read. */
typedef struct {
    pid_t    pid;
    uint64_t clientQ;
    const ebpfMonBaseRelease *base;
    unsigned clients, channels;
    int      isRead;
} countJob;

static void runCountJob(void *data)
{
    countJob *j = data;

    for (int i = 0; !j->isRead && i < TRIES; i++)
        j->isRead = countClients(j->pid, j->clientQ, j->base, &j->clients, &j->channels) == 0;
}

int ebpfMonCaServerCount(pid_t pid, uint64_t clientQ, const ebpfMonBaseRelease *base, unsigned *clients,
                         unsigned *channels)
{
    static const ebpfMonForeignJob job = { runCountJob, free };
    countJob *j = clientQ ? malloc(sizeof(*j)) : NULL;
    int isRead;

    if (!j)
        return -1;
    *j = (countJob){ .pid = pid, .clientQ = clientQ, .base = base };
    if (ebpfMonForeignRun(pid, SECONDS, &job, j))
        return -1;
    isRead = j->isRead;
    if (isRead) {
        *clients = j->clients;
        *channels = j->channels;
    }
    free(j);
    return isRead ? 0 : -1;
}

/* --- does it look like rsrv --- */

/* Checks whether the structs of an IOC's CA server have the layout of ioc/baseLayout.h. */

#define CLIENT_HEAD 256
#define CHANNEL_HEAD 128
#define NAME_MAX_SIZE 512 /* of a user or host, as rsrv takes it (camessage.c, client_name_action) */

typedef struct {
    ebpfMonMem *mem;
    const ebpfMonCatalogue *cat;
    const ebpfMonBaseRelease *base;
} Look;

/* A name, or none yet. */
static int isChannelName(ebpfMonMem *mem, uint64_t at)
{
    char name[NAME_MAX_SIZE];

    return !at || ebpfMonMemStr(mem, at, name, sizeof(name)) == 0;
}

/* NULL: the channel belongs to this client, and leads to a record. Else the member that is otherwise. */
static const char *findOddOfChannel(const Look *l, uint64_t at, uint64_t client)
{
    const ebpfMonBaseRelease *b = l->base;
    char ciu[CHANNEL_HEAD];
    uint64_t precord, as;
    struct { uint64_t callback; uint32_t level, access; } rights; /* asgClient's; the server always sets a callback */

    if (ebpfMonMemRead(l->mem, at, ciu, sizeof(ciu)) || ebpfMonMemNumberAt(ciu, b->channel.client) != client)
        return "channel_in_use.client";
    precord = ebpfMonMemNumberAt(ciu, b->channel.dbch);
    if (b->has.channels)
        precord = ebpfMonMemPtr(l->mem, precord + EBPFMON_DbChannel_addr);
    if (ebpfMonCatalogueFindAddr(l->cat, precord) < 0)
        return "channel_in_use.dbch";
    as = ebpfMonMemNumberAt(ciu, b->channel.asClientPVT);
    if (!as || (ebpfMonMemRead(l->mem, as + b->asgClient.access - 12, &rights, sizeof(rights)) == 0 &&
                rights.callback && rights.access <= EBPFMON_AS_WRITE))
        return NULL;
    return "channel_in_use.asClientPVT";
}

/* 1: it is a client with a channel; 0: it may be a client, without a channel; -1: it is not a client. */
static int judgeClient(const Look *l, uint64_t at, const char *head, const char **odd)
{
    const ebpfMonBaseRelease *b = l->base;
    struct layoutList channels;
    uint16_t family;
    uint32_t stk, cnt;

    memcpy(&family, head + b->client.addr, sizeof(family));
    memcpy(&stk, head + b->client.recvStk, sizeof(stk));
    memcpy(&cnt, head + b->client.recvCnt, sizeof(cnt));
    memcpy(&channels, head + b->client.chanList, sizeof(channels));
    if (family != AF_INET)
        *odd = "client.addr";
    else if (!ebpfMonMemNumberAt(head, b->client.recvBuf) || stk > cnt)
        *odd = "client.recv";
    else if (!isChannelName(l->mem, ebpfMonMemNumberAt(head, b->client.pUserName)))
        *odd = "client.pUserName";
    else if (!isChannelName(l->mem, ebpfMonMemNumberAt(head, b->client.pHostName)))
        *odd = "client.pHostName";
    else if (channels.count < 0 || !channels.first != !channels.count)
        *odd = "client.chanList";
    else if (channels.first)
        *odd = findOddOfChannel(l, channels.first, at);
    return *odd ? -1 : channels.first != 0;
}

int ebpfMonCaServerIsKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base,
                           uint64_t clientQ, const char **odd)
{
    Look l = { mem, cat, base };
    struct layoutList q;
    char head[CLIENT_HEAD];
    int known = 0;

    *odd = NULL;
    if (!clientQ || ebpfMonMemRead(mem, clientQ, &q, sizeof(q)))
        return 0;
    for (uint64_t at = q.first; at && known == 0 && q.count-- > 0; at = ebpfMonMemNumberAt(head, 0)) {
        if (ebpfMonMemRead(mem, at, head, sizeof(head))) {
            *odd = "client";
            return -1;
        }
        known = judgeClient(&l, at, head, odd);
    }
    return known;
}
