/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
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
    uint32_t access;

    if (ebpfMonMemRead(l->mem, at, ciu, sizeof(ciu)) || ebpfMonMemNumberAt(ciu, b->channel.client) != client)
        return "channel_in_use.client";
    precord = ebpfMonMemNumberAt(ciu, b->channel.dbch);
    if (b->has.channels)
        precord = ebpfMonMemPtr(l->mem, precord + EBPFMON_DbChannel_addr);
    if (ebpfMonCatalogueFindAddr(l->cat, precord) < 0)
        return "channel_in_use.dbch";
    as = ebpfMonMemNumberAt(ciu, b->channel.asClientPVT);
    if (!as || (ebpfMonMemRead(l->mem, as + b->asgClient.access, &access, sizeof(access)) == 0 &&
                access <= EBPFMON_AS_WRITE))
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

/* --- who is connected --- */

/*
 * clientQ (caservertask.c) → struct client → chanList and chanPendingUpdateARList → struct channel_in_use → eventq (all
 * in rsrv/server.h; casr: log_one_client). The server goes on meanwhile, and the reader's blocks are of different
 * moments: lists must lead back and have as many members as they say, else all is read again.
 */

#define SUBSCRIPTIONS_MAX 1000000  /* of a channel */
#define LOOK_NS EBPFMON_SECOND_NS
#define CHAN_SIZE 112 /* of a struct channel_in_use, as far as it is read: 3.14 has a DBADDR in it */
#define NAME_SIZE 512 /* of a user or host, as rsrv takes it (camessage.c, client_name_action) */

typedef struct {
    ebpfMonMem *mem;
    const ebpfMonCatalogue *cat;
    const ebpfMonBaseRelease *base;
    uint64_t until;          /* monotonic ns */
    ebpfMonCaClients *to;
    size_t clientRoom, useRoom, nameRoom;
} look;

static int isLate(const look *l)
{
    return ebpfMonClockMonotonic() >= l->until;
}

static int addChannelName(look *l, const char *name, uint32_t *offset)
{
    ebpfMonCaClients *to = l->to;
    size_t size = strlen(name) + 1;

    if (to->nameBytes + size > UINT32_MAX || ebpfMonArrayGrow(&to->names, &l->nameRoom, to->nameBytes + size, 4096, 1))
        return -1;
    memcpy(to->names + to->nameBytes, name, size);
    *offset = (uint32_t)to->nameBytes;
    to->nameBytes += size;
    return 0;
}

/* The record of a channel, and its name. 0, or -1: the channel does not lead to a record. */
static int readTarget(const look *l, const char *ciu, long *record, char *name, size_t size)
{
    const ebpfMonBaseRelease *b = l->base;
    struct layoutDbChannel channel = { .name = 0 };
    const ebpfMonField *field;
    char text[128];

    if (!b->has.channels)
        memcpy(&channel.addr, ciu + b->channel.dbch, sizeof(channel.addr));
    else if (ebpfMonMemRead(l->mem, ebpfMonMemNumberAt(ciu, b->channel.dbch), &channel, sizeof(channel)))
        return -1;
    *record = ebpfMonCatalogueFindAddr(l->cat, channel.addr.precord);
    if (*record < 0)
        return -1;
    if (channel.name && ebpfMonMemStr(l->mem, channel.name, text, sizeof(text)) >= 0) {
        ebpfMonTextCopy(name, size, text);
        return 0;
    }
    field = ebpfMonCatalogueField(l->cat, channel.addr.pfldDes);
    snprintf(name, size, "%s%s%s", ebpfMonCatalogueName(l->cat, (uint32_t)*record), field ? "." : "",
             field ? field->name : "");
    return 0;
}

static int addChannel(look *l, uint64_t at, const char *ciu, ebpfMonCaClient *client)
{
    ebpfMonCaClients *to = l->to;
    ebpfMonCaUse use = { .client = to->clients, .at = at };
    struct layoutList events;
    char name[128];
    long record;

    memcpy(&events, ciu + l->base->channel.eventq, sizeof(events));
    memcpy(&use.sid, ciu + l->base->channel.sid, sizeof(use.sid));
    memcpy(&use.since, ciu + l->base->channel.time_at_creation, sizeof(use.since));
    if (events.count < 0 || events.count > SUBSCRIPTIONS_MAX || !events.first != !events.count)
        return -1;
    use.subscriptions = (uint32_t)events.count;
    client->subscriptions += use.subscriptions;
    client->channels++;
    if (!client->since.secPastEpoch || epicsTimeLessThan(&use.since, &client->since))
        client->since = use.since;
    if (readTarget(l, ciu, &record, name, sizeof(name)))
        return -1;
    use.record = (uint32_t)record;
    if (to->uses >= EBPFMON_CACLIENT_CHANNELS || addChannelName(l, name, &use.name) ||
        ebpfMonArrayGrow(&to->use, &l->useRoom, to->uses + 1, 256, sizeof(*to->use)))
        to->leftOut++;
    else
        to->use[to->uses++] = use;
    return 0;
}

static int addChannels(look *l, const struct layoutList *list, uint64_t clientAt, ebpfMonCaClient *client)
{
    uint64_t at = list->first, before = 0;
    char ciu[CHAN_SIZE];
    struct layoutNode node;
    int32_t n;

    if (list->count < 0 || list->count > CHANNELS_MAX)
        return -1;
    for (n = 0; at && n < list->count; n++) {
        if (isLate(l) || at % sizeof(uint64_t) || ebpfMonMemRead(l->mem, at, ciu, sizeof(ciu)))
            return -1;
        memcpy(&node, ciu, sizeof(node));
        if (node.prev != before || ebpfMonMemNumberAt(ciu, l->base->channel.client) != clientAt ||
            addChannel(l, at, ciu, client))
            return -1;
        before = at;
        at = node.next;
    }
    return at || n != list->count || before != list->last ? -1 : 0;
}

/* What a client claims to be; nothing if it has not yet. */
static int readClaim(ebpfMonMem *mem, uint64_t at, char *buf, size_t size)
{
    char text[NAME_SIZE];

    buf[0] = 0;
    if (!at)
        return 0;
    if (ebpfMonMemStr(mem, at, text, sizeof(text)) < 0)
        return -1;
    ebpfMonTextCopy(buf, size, text);
    return 0;
}

static int compareSids(const void *left, const void *right)
{
    uint32_t l = ((const ebpfMonCaUse *)left)->sid, r = ((const ebpfMonCaUse *)right)->sid;

    return (l > r) - (l < r);
}

static int addClient(look *l, uint64_t at, const char *head)
{
    const ebpfMonBaseRelease *b = l->base;
    ebpfMonCaClients *to = l->to;
    ebpfMonCaClient client = { .at = at, .firstUse = to->uses };
    struct layoutList chans, pending;

    memcpy(&client.port, head + b->client.addr + 2, sizeof(client.port)); /* sin_port, sin_addr of its sockaddr_in */
    memcpy(&client.addr, head + b->client.addr + 4, sizeof(client.addr));
    memcpy(&chans, head + b->client.chanList, sizeof(chans));
    memcpy(&pending, head + b->client.chanPendingUpdateARList, sizeof(pending));
    if (readClaim(l->mem, ebpfMonMemNumberAt(head, b->client.pUserName), client.user, sizeof(client.user)) ||
        readClaim(l->mem, ebpfMonMemNumberAt(head, b->client.pHostName), client.host, sizeof(client.host)) ||
        addChannels(l, &chans, at, &client) || addChannels(l, &pending, at, &client) ||
        ebpfMonArrayGrow(&to->client, &l->clientRoom, to->clients + 1u, 16, sizeof(*to->client)))
        return -1;
    ebpfMonTextMarkClaim(client.user, sizeof(client.user));
    if (to->uses > client.firstUse)
        qsort(&to->use[client.firstUse], to->uses - client.firstUse, sizeof(*to->use), compareSids);
    to->client[to->clients++] = client;
    return 0;
}

static int readAll(look *l, uint64_t clientQ)
{
    struct layoutList q;
    struct layoutNode node;
    char head[HEAD_MAX];
    uint64_t at, before = 0;
    int32_t n;

    if (ebpfMonMemRead(l->mem, clientQ, &q, sizeof(q)) || q.count < 0 || q.count > CLIENTS_MAX)
        return -1;
    at = q.first;
    for (n = 0; at && n < q.count; n++) {
        if (at % sizeof(uint64_t) || ebpfMonMemRead(l->mem, at, head, sizeof(head)))
            return -1;
        memcpy(&node, head, sizeof(node));
        if (node.prev != before || addClient(l, at, head))
            return -1;
        before = at;
        at = node.next;
    }
    return at || n != q.count || before != q.last ? -1 : 0;
}

ebpfMonCaClients *ebpfMonCaClientsRead(ebpfMonMem *mem, const ebpfMonCatalogue *cat, uint64_t clientQ)
{
    look l = { .mem = mem, .cat = cat, .base = cat->base, .until = ebpfMonClockMonotonic() + LOOK_NS };

    for (int i = 0; clientQ && i < TRIES && !isLate(&l); i++) {
        int isRead;

        l.to = calloc(1, sizeof(*l.to));
        l.clientRoom = l.useRoom = l.nameRoom = 0;
        if (!l.to)
            return NULL;
        ebpfMonMemFlush(mem);
        isRead = readAll(&l, clientQ) == 0;
        ebpfMonMemFlush(mem);
        if (isRead)
            return l.to;
        ebpfMonCaClientsFree(l.to);
    }
    return NULL;
}

const ebpfMonCaUse *ebpfMonCaClientsFindUse(const ebpfMonCaClients *clients, uint32_t addr, uint16_t port, uint32_t sid)
{
    const ebpfMonCaUse key = { .sid = sid }, *found = NULL;

    for (unsigned i = 0; i < clients->clients && !found; i++) {
        const ebpfMonCaClient *c = &clients->client[i];
        size_t end = i + 1 < clients->clients ? c[1].firstUse : clients->uses;

        if (c->addr == addr && c->port == port && end > c->firstUse)
            found = bsearch(&key, &clients->use[c->firstUse], end - c->firstUse, sizeof(key), compareSids);
    }
    return found;
}

void ebpfMonCaClientsFree(ebpfMonCaClients *clients)
{
    if (!clients)
        return;
    free(clients->client);
    free(clients->use);
    free(clients->names);
    free(clients);
}
