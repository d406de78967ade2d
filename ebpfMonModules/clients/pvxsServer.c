/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pvxServer → server::Server → Server::Pvt.connections → ServerConn → cred, chanBySID → ServerChan; opByIOID → ServerOp
 * (ioc/iochooks.cpp, src/serverconn.h of pvxs). Where the members lie depends on the release. So they are looked for by
 * what is known of their content, in libstdc++: a map whose keys are the same addresses as its values, a shared_ptr
 * whose counters stand before its object, a channel that leads back to its connection.
 */
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text.h"
#include "clients/pvxsServer.h"

#define HOLDER_WORDS 8    /* pvxServer_t: a mutex, and the server */
#define PVT_WORDS    256  /* Server::Pvt; "connections" is at 760 bytes in 2026 */
#define CONN_WORDS   64   /* ServerConn; "cred" is at 216 bytes in 2026 */
#define SHARED       16   /* the counters of a std::shared_ptr that std::make_shared has put before its object */
#define TEXT_MAX     256
#define CHAN_WORDS   8    /* ServerChan: its connection, numbers, name */
#define OPERATIONS   100000

/* A std::map: its header, and a node with what we read of a key and a value (bits/stl_tree.h). */
enum { mapHeader = 1, mapRoot = 2, mapFirst = 3, mapCount = 5, MAP_WORDS = 6 };
enum { nodeParent = 1, nodeLeft = 2, nodeRight = 3, nodeKey = 4, nodeValue = 5, nodeCounters = 6, NODE_WORDS = 7 };

/* Members of PeerCredentials (src/pvxs/netcommon.h), one text behind the other; the third to last is there if pvxs has
 * TLS. Before, the account follows the method. */
enum { credentialPeer, credentialMethod = 2, credentialAuthority, credentialAccount, credentialTls };

/* The size of a std::string in bytes: of today, and of builds for old distributions (_GLIBCXX_USE_CXX11_ABI=0), as
 * wheels of Python: a pointer to characters, with their number before them. */
#define TEXT_NEW 32
#define TEXT_OLD 8
#define OLD_HEAD 24

typedef struct {
    ebpfMonMem *mem;
    ebpfMonPvxsClients *to;
    unsigned textSize;
    size_t clientRoom, channelRoom, nameRoom;
} pvxsReader;

void ebpfMonPvxsClientsFree(ebpfMonPvxsClients *clients)
{
    if (!clients)
        return;
    free(clients->client);
    free(clients->channel);
    free(clients->names);
    free(clients);
}

/* A std::string of libstdc++. 0, or -1: it is none, or too long. */
static int readOldString(ebpfMonMem *mem, uint64_t at, char *buf, size_t size)
{
    uint64_t head[OLD_HEAD / 8], text = ebpfMonMemPtr(mem, at);

    if (text <= 4096 || ebpfMonMemRead(mem, text - OLD_HEAD, head, sizeof(head)) || head[0] >= size ||
        head[1] < head[0] || ebpfMonMemRead(mem, text, buf, head[0] + 1) || buf[head[0]])
        return -1;
    return strlen(buf) == head[0] ? 0 : -1;
}

static int readStdString(const pvxsReader *r, uint64_t at, char *buf, size_t size)
{
    ebpfMonMem *mem = r->mem;
    uint64_t s[4];

    if (r->textSize == TEXT_OLD)
        return readOldString(mem, at, buf, size);
    if (ebpfMonMemRead(mem, at, s, sizeof(s)) || s[1] >= size ||
        (s[0] == at + 16 ? s[1] > 15 : s[2] < s[1] || s[0] <= 4096))
        return -1;
    if (s[1] && ebpfMonMemRead(mem, s[0], buf, s[1]))
        return -1;
    buf[s[1]] = 0;
    return strlen(buf) == s[1] ? 0 : -1;
}

/* --- maps --- */

/* The node after this one. 0: it was the last one, or the map changes. */
static uint64_t findNextNode(ebpfMonMem *mem, uint64_t header, uint64_t at, const uint64_t *node)
{
    uint64_t n[NODE_WORDS], next = node[nodeRight];
    unsigned steps = 0;

    if (next) {
        while (steps++ < 64 && !ebpfMonMemRead(mem, next, n, sizeof(n)) && n[nodeLeft])
            next = n[nodeLeft];
        return steps < 64 ? next : 0;
    }
    for (next = node[nodeParent]; steps++ < 64 && next != header; next = n[nodeParent]) {
        if (ebpfMonMemRead(mem, next, n, sizeof(n)))
            return 0;
        if (n[nodeRight] != at)
            return next;
        at = next;
    }
    return 0;
}

/* Calls each(reader, arg, node) for all nodes. 0, or -1: not all could be read. */
static int walkMap(pvxsReader *r, uint64_t map, size_t max, int (*each)(pvxsReader *, uint64_t, const uint64_t *),
                   uint64_t arg)
{
    uint64_t m[MAP_WORDS], node[NODE_WORDS], at, header = map + 8 * mapHeader;
    size_t found = 0;

    if (ebpfMonMemRead(r->mem, map, m, sizeof(m)))
        return -1;
    for (at = m[mapFirst]; m[mapCount] && at && at != header && found < max; found++) {
        if (ebpfMonMemRead(r->mem, at, node, sizeof(node)) || each(r, arg, node))
            return -1;
        at = findNextNode(r->mem, header, at, node);
    }
    return found == m[mapCount] || found == max ? 0 : -1;
}

/* Nonzero: a map of connections, with one at least. */
static int isConnections(ebpfMonMem *mem, uint64_t map, const uint64_t *m)
{
    uint64_t node[NODE_WORDS];

    return m[mapCount] && m[mapCount] < 1u << 20 && m[mapRoot] > 4096 && m[mapFirst] > 4096 &&
           !ebpfMonMemRead(mem, m[mapRoot], node, sizeof(node)) && node[nodeParent] == map + 8 * mapHeader &&
           node[nodeKey] > 4096 && node[nodeKey] == node[nodeValue] && node[nodeCounters] + SHARED == node[nodeValue];
}

/* 0: there is none. */
static uint64_t findConnections(ebpfMonMem *mem, uint64_t variable)
{
    uint64_t holder[HOLDER_WORDS], word[PVT_WORDS], at = ebpfMonMemPtr(mem, variable);

    if (!at || ebpfMonMemRead(mem, at, holder, sizeof(holder)))
        return 0;
    for (unsigned i = 0; i + 1 < HOLDER_WORDS; i++) {
        if (holder[i] <= 4096 || holder[i + 1] <= 4096 || ebpfMonMemRead(mem, holder[i], word, sizeof(word)))
            continue;
        for (unsigned k = 0; k + MAP_WORDS <= PVT_WORDS; k++)
            if (isConnections(mem, holder[i] + 8 * k, &word[k]))
                return holder[i] + 8 * k;
    }
    return 0;
}

/* --- a connection --- */

/* 0, or -1: this is none. */
static int readCredentials(pvxsReader *r, uint64_t at, ebpfMonPvxsClient *c)
{
    char peer[TEXT_MAX], method[TEXT_MAX], third[TEXT_MAX], fourth[TEXT_MAX];
    uint8_t isTls;

    r->textSize = TEXT_NEW;
    if (readStdString(r, at, peer, sizeof(peer))) {
        r->textSize = TEXT_OLD;
        if (readStdString(r, at, peer, sizeof(peer)))
            return -1;
    }
    if (!strchr(peer, ':') || readStdString(r, at + credentialMethod * r->textSize, method, sizeof(method)) ||
        readStdString(r, at + credentialAuthority * r->textSize, third, sizeof(third)))
        return -1;
    ebpfMonTextCopy(c->peer, sizeof(c->peer), peer);
    ebpfMonTextCopy(c->method, sizeof(c->method), method);
    c->isTls = -1;
    /* only a certificate has an authority: else, the third is the account, and this pvxs has no TLS */
    if ((third[0] && strcmp(method, "x509") != 0) ||
        readStdString(r, at + credentialAccount * r->textSize, fourth, sizeof(fourth)) ||
        ebpfMonMemRead(r->mem, at + credentialTls * r->textSize, &isTls, 1) || isTls > 1) {
        ebpfMonTextCopy(c->account, sizeof(c->account), third);
        return 0;
    }
    ebpfMonTextCopy(c->authority, sizeof(c->authority), third);
    ebpfMonTextCopy(c->account, sizeof(c->account), fourth);
    c->isTls = isTls;
    return 0;
}

static int addPvxsChannel(pvxsReader *r, uint64_t conn, const uint64_t *node)
{
    ebpfMonPvxsClients *to = r->to;
    uint64_t chan[CHAN_WORDS];
    char name[TEXT_MAX];
    size_t size;

    if (ebpfMonMemRead(r->mem, node[nodeValue], chan, sizeof(chan)) || chan[0] != conn ||
        (uint32_t)chan[2] != (uint32_t)node[nodeKey] ||
        readStdString(r, node[nodeValue] + 24, name, sizeof(name)))
        return -1;
    size = strlen(name) + 1;
    to->client[to->clients].channels++;
    if (to->channels == EBPFMON_PVXS_CHANNELS)
        return 0;
    if (ebpfMonArrayGrow(&to->channel, &r->channelRoom, to->channels + 1, 64, sizeof(*to->channel)) ||
        ebpfMonArrayGrow(&to->names, &r->nameRoom, to->nameBytes + size, 4096, 1))
        return -1;
    to->channel[to->channels++] = (ebpfMonPvxsChannel){ .client = to->clients, .sid = (uint32_t)chan[2],
                                                                .name = (uint32_t)to->nameBytes };
    memcpy(to->names + to->nameBytes, name, size);
    to->nameBytes += size;
    return 0;
}

/* Nonzero: its class is that of monitors (the name in its type_info). */
static int isMonitor(ebpfMonMem *mem, uint64_t operation)
{
    uint64_t table = ebpfMonMemPtr(mem, operation), type = table ? ebpfMonMemPtr(mem, table - 8) : 0;
    uint64_t at = type ? ebpfMonMemPtr(mem, type + 8) : 0;
    char name[TEXT_MAX];

    return at && !ebpfMonMemStr(mem, at, name, sizeof(name)) && strstr(name, "MonitorOp");
}

static int findBySid(const void *sid, const void *channel)
{
    uint32_t l = *(const uint32_t *)sid, r = ((const ebpfMonPvxsChannel *)channel)->sid;

    return (l > r) - (l < r);
}

/* An operation of a connection: an open get, put or monitor. */
static int addOperation(pvxsReader *r, uint64_t conn, const uint64_t *node)
{
    ebpfMonPvxsClients *to = r->to;
    size_t first = to->client[to->clients].firstChannel;
    uint64_t op[4], chan[CHAN_WORDS];
    ebpfMonPvxsChannel *channel;
    uint32_t sid;

    if (ebpfMonMemRead(r->mem, node[nodeValue], op, sizeof(op)) || (uint32_t)op[3] != (uint32_t)node[nodeKey])
        return -1;
    if (!isMonitor(r->mem, node[nodeValue]))
        return 0;
    to->client[to->clients].monitors++;
    if (ebpfMonMemRead(r->mem, op[1], chan, sizeof(chan)) || chan[0] != conn)
        return -1;
    sid = (uint32_t)chan[2];
    channel = to->channels > first ? bsearch(&sid, &to->channel[first], to->channels - first, sizeof(*channel),
                                             findBySid) : NULL;
    if (channel)
        channel->monitors++;
    return 0;
}

static int addConnection(pvxsReader *r, uint64_t arg, const uint64_t *node)
{
    ebpfMonPvxsClients *to = r->to;
    uint64_t word[CONN_WORDS], conn = node[nodeKey];
    ebpfMonPvxsClient c = { .firstChannel = to->channels };
    unsigned i = 0;

    if (node[nodeValue] != conn || ebpfMonMemRead(r->mem, conn, word, sizeof(word)) ||
        ebpfMonArrayGrow(&to->client, &r->clientRoom, to->clients + 1, 16, sizeof(*to->client)))
        return -1;
    while (i + 1 < CONN_WORDS && (word[i] <= 4096 || word[i + 1] + SHARED != word[i] ||
                                  readCredentials(r, word[i], &c)))
        i++;
    if (i + 1 == CONN_WORDS)
        return -1;
    to->client[to->clients] = c;
    /* behind the credentials: the next number, and the two maps */
    if (walkMap(r, conn + 8 * (i + 3), EBPFMON_PVXS_CHANNELS, addPvxsChannel, conn) ||
        walkMap(r, conn + 8 * (i + 3 + MAP_WORDS), OPERATIONS, addOperation, conn))
        return -1;
    to->clients++;
    return 0;
}

ebpfMonPvxsClients *ebpfMonPvxsServerRead(ebpfMonMem *mem, uint64_t variable)
{
    pvxsReader r = { .mem = mem, .to = calloc(1, sizeof(*r.to)) };
    uint64_t map;

    ebpfMonMemFlush(mem);
    map = r.to ? findConnections(mem, variable) : 0;
    if (map && walkMap(&r, map, EBPFMON_PVXS_CLIENTS, addConnection, 0) == 0)
        return r.to;
    ebpfMonPvxsClientsFree(r.to);
    return NULL;
}
