/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/caClients.h"
#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"

/*
 * clientQ (caservertask.c) → struct client → chanList and chanPendingUpdateARList → struct channel_in_use → eventq (all
 * in rsrv/server.h; casr: log_one_client). The server goes on meanwhile, and the reader's blocks are of different
 * moments: lists must lead back and have as many members as they say, else all is read again.
 */

#define CLIENTS_MAX  20000
#define CHANNELS_MAX 50000000
#define SUBSCRIPTIONS_MAX 1000000  /* of a channel */
#define TRIES   3
#define LOOK_NS EBPFMON_SECOND_NS
#define HEAD_MAX  256 /* of a struct client */
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

static int addCaChannel(look *l, uint64_t at, const char *ciu, ebpfMonCaClient *client)
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

static int addCaChannels(look *l, const struct layoutList *list, uint64_t clientAt, ebpfMonCaClient *client)
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
            addCaChannel(l, at, ciu, client))
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

static int addCaClient(look *l, uint64_t at, const char *head)
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
        addCaChannels(l, &chans, at, &client) || addCaChannels(l, &pending, at, &client) ||
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
        if (node.prev != before || addCaClient(l, at, head))
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
