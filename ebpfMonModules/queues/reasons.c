/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/foreign.h"
#include "host/netnsSocket.h"
#include "host/ownAddresses.h"
#include "host/procNetns.h"
#include "host/procStat.h"
#include "host/serverSockets.h"
#include "host/tcpSockets.h"
#include "queues/reasons.h"

#define CA_PORT       5064
#define SYN_SENT      2          /* include/net/tcp_states.h */
#define ENVIRON_BYTES 1000000
#define ENVIRON_SECONDS 0.5
#define NAME_SERVERS  8          /* of a client that are looked at */

/* --- sockets ----------------------------------------------------------------------------------------------------- */

typedef struct {
    ebpfMonReasonSockets *to;
    uint32_t netns;
} udpLook;

static int addSocket(void *arg, const ebpfMonTcpRow *row)
{
    udpLook *l = arg;

    if (l->to->count == EBPFMON_REASON_SOCKETS)
        return 1;
    l->to->socket[l->to->count++] = (ebpfMonReasonSocket){ .netns = l->netns, .addr = row->local,
                                                           .port = row->localPort, .inode = row->inode };
    return 0;
}

typedef struct {
    ebpfMonReasonSockets *to;
    const uint8_t *isWanted;
    pid_t pid;
} ownerLook;

static void noteOwned(void *arg, unsigned file, unsigned long inode)
{
    ownerLook *l = arg;

    (void)file;
    for (unsigned i = 0; i < l->to->count; i++)
        if (l->isWanted[i] && l->to->socket[i].inode == inode && !l->to->socket[i].pid)
            l->to->socket[i].pid = l->pid;
}

static void findOwners(ebpfMonReasonSockets *s, const uint8_t *isWanted)
{
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);

    for (int i = 0; i < n; i++) {
        ownerLook l = { s, isWanted, pids[i] };

        ebpfMonTcpOwned(pids[i], noteOwned, &l);
    }
    free(pids);
}

void ebpfMonReasonSocketsRead(ebpfMonReasonSockets *s, const pid_t *pids, unsigned count, const uint16_t *port,
                              unsigned ports)
{
    ebpfMonNetns *list = NULL;
    int n = ebpfMonProcNetnsList(pids, count, &list);
    uint8_t *isWanted = calloc(EBPFMON_REASON_SOCKETS, 1);
    int isAny = 0;

    s->count = 0;
    for (int i = 0; i < n; i++)
        ebpfMonUdpRows(list[i].pid, addSocket, &(udpLook){ s, list[i].netns });
    for (unsigned i = 0; isWanted && i < s->count; i++)
        for (unsigned k = 0; k < ports && !isWanted[i]; k++)
            isAny |= isWanted[i] = s->socket[i].port == port[k] && s->socket[i].inode;
    if (isAny)
        findOwners(s, isWanted);
    free(isWanted);
    free(list);
}

static int takesFrom(const ebpfMonReasonSocket *socket, uint32_t netns, uint32_t addr, uint16_t port)
{
    return socket->port == port && socket->netns == netns && (!socket->addr || socket->addr == addr);
}

pid_t ebpfMonReasonFindClient(const ebpfMonReasonSockets *s, const struct ebpfMonPeer *way)
{
    for (unsigned i = 0; way->addr && i < s->count; i++) /* 0: IPv6 */
        if (s->socket[i].pid && takesFrom(&s->socket[i], way->netns, way->addr, way->port))
            return s->socket[i].pid;
    return 0;
}

/* --- what is there ------------------------------------------------------------------------------------------------ */

/* Nonzero: datagrams and connections to this address stay in the namespace of the process. */
static int isOwnAddress(pid_t pid, uint32_t addr)
{
    static const uint32_t none[4];
    ebpfMonOwnAddresses own;

    if (*(const uint8_t *)&addr == 127)
        return ntohl(addr) != 0x7fffffff;
    ebpfMonOwnAddressesRead(pid, &own);
    return ebpfMonOwnAddressesHave(&own, addr, none);
}

static void nameProcess(pid_t pid, char *buf, size_t size)
{
    char command[64] = "a process";

    ebpfMonProcCommand(pid, command, sizeof(command));
    snprintf(buf, size, "%s (pid %d)", command, (int)pid);
}

typedef struct {
    uint32_t addr;
    uint16_t port;
    int      isFound;
} remoteLook;

static int compareRemote(void *arg, const ebpfMonTcpRow *row)
{
    remoteLook *l = arg;

    l->isFound |= row->remote == l->addr && row->remotePort == l->port;
    return l->isFound;
}

/* What is wrong with the TCP port of a server, as the client sees it; "": nothing was seen. */
static void describePort(pid_t client, uint32_t netns, uint32_t addr, uint16_t port, char *text, size_t size)
{
    remoteLook l = { addr, port, 0 };
    struct ebpfMonPeer peer = { .saddr = addr, .sport = port, .netns = netns, .addr = addr };

    text[0] = 0;
    if (isOwnAddress(client, addr) && !ebpfMonServerSocketsFindProcess(&peer)) {
        snprintf(text, size, "refuses: nobody listens there");
        return;
    }
    ebpfMonTcpRows(client, EBPFMON_TCP_STATE(SYN_SENT), compareRemote, &l);
    if (l.isFound)
        snprintf(text, size, "does not answer");
}

/* The value of a variable with which the process was started; "" if it has none, or may not be read. */
static void readVariable(pid_t pid, const char *name, char *value, size_t size)
{
    char path[40], *text;
    size_t n = strlen(name), at = 0, bytes = 0;

    value[0] = 0;
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    text = malloc(ENVIRON_BYTES);
    if (text) {
        ssize_t got = ebpfMonForeignReadFile(pid, path, ENVIRON_SECONDS, text, ENVIRON_BYTES);

        bytes = got > 0 ? (size_t)got : 0;
    }
    for (; at < bytes; at += strnlen(text + at, bytes - at) + 1)
        if (strncmp(text + at, name, n) == 0 && text[at + n] == '=')
            snprintf(value, size, "%s", text + at + n + 1);
    free(text);
}

/* "10.1.2.3", "10.1.2.3:5064". 0, or -1: it is a name, or nothing. */
static int parseAddress(const char *text, uint32_t *addr, uint16_t *port)
{
    char host[64];
    unsigned n = CA_PORT;
    struct in_addr in;

    if (sscanf(text, "%63[0-9.]:%u", host, &n) < 1 || n > 65535 || inet_pton(AF_INET, host, &in) != 1)
        return -1;
    *addr = in.s_addr;
    *port = htons((uint16_t)n);
    return 0;
}

/* The first of EPICS_CA_NAME_SERVERS that cannot be reached. Nonzero: there is one. */
static int describeNameServers(pid_t client, uint32_t netns, char *text, size_t size)
{
    char list[1000], *rest = list, *one;
    unsigned n = 0;

    readVariable(client, "EPICS_CA_NAME_SERVERS", list, sizeof(list));
    while ((one = strsep(&rest, " \t")) != NULL && n < NAME_SERVERS) {
        char what[60], end[EBPFMON_PEERTEXT_SIZE + 8];
        static const uint32_t none[4];
        uint32_t addr;
        uint16_t port;

        if (!one[0] || parseAddress(one, &addr, &port))
            continue;
        n++;
        describePort(client, netns, addr, port, what, sizeof(what));
        if (!what[0])
            continue;
        ebpfMonPeerTextEnd(addr, none, port, end, sizeof(end));
        snprintf(text, size, "name server %s %s", end, what);
        return 1;
    }
    return 0;
}

/* --- the sentence ------------------------------------------------------------------------------------------------- */

/* Two processes have the UDP port to which the search went by unicast: the kernel gives it to one of them (udp(7),
 * SO_REUSEADDR). Nonzero: so it is. */
static int describeSharedPort(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const struct ebpfMonPeer *way = &q->search.way;
    const ebpfMonReasonSocket *first = NULL;
    char one[100], two[100];

    if (!way->saddr || !isOwnAddress(q->client, way->saddr))
        return 0;
    for (unsigned i = 0; i < s->count; i++) {
        const ebpfMonReasonSocket *socket = &s->socket[i];

        if (!socket->pid || !takesFrom(socket, way->netns, way->saddr, way->sport))
            continue;
        if (!first) {
            first = socket;
        } else if (first->pid != socket->pid && first->addr == socket->addr) {
            nameProcess(first->pid, one, sizeof(one));
            nameProcess(socket->pid, two, sizeof(two));
            snprintf(text, size, "it is searched by unicast at UDP port %u, which %s and %s share: only one of them "
                     "gets it", ntohs(way->sport), one, two);
            return 1;
        }
    }
    return 0;
}

/* It was answered, and there is no channel. */
static int describeAnswer(const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const struct ebpfMonPeer *a = &q->search.server[0], *b = &q->search.server[1];
    char end[EBPFMON_PEERTEXT_SIZE + 8], other[EBPFMON_PEERTEXT_SIZE + 8], what[60];

    ebpfMonPeerTextEnd(a->saddr, a->saddr6, a->sport, end, sizeof(end));
    if (q->search.servers > 1) {
        ebpfMonPeerTextEnd(b->saddr, b->saddr6, b->sport, other, sizeof(other));
        snprintf(text, size, "answered by two servers, %s and %s", end, other);
        return 1;
    }
    describePort(q->client, a->netns, a->saddr, a->sport, what, sizeof(what));
    if (what[0])
        snprintf(text, size, "answered by %s, whose TCP port %s", end, what);
    else
        snprintf(text, size, "answered by %s, and not connected", end);
    return 1;
}

/* Watched IOCs that have the record. Nonzero: that is a fault. */
static int describeOwners(const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const ebpfMonReasonOwner *o = q->owner;

    if (q->owners > 1)
        snprintf(text, size, "IOC %s (pid %d) and IOC %s (pid %d) both have it", o[0].name, (int)o[0].pid, o[1].name,
                 (int)o[1].pid);
    else if (ebpfMonProcStandsStill(o[0].pid, o[0].pid))
        snprintf(text, size, "IOC %s (pid %d) has it, and stands still: a signal or a debugger has stopped it",
                 o[0].name, (int)o[0].pid);
    else
        snprintf(text, size, "IOC %s (pid %d) has it, and no answer of it was seen", o[0].name, (int)o[0].pid);
    return 1;
}

int ebpfMonReasonDescribe(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    uint32_t netns = q->search.way.netns ? q->search.way.netns : q->client ? ebpfMonProcNetns(q->client) : 0;
    char nameServer[160] = "";
    int isFault;

    if (q->owners == 1 && ebpfMonProcStandsStill(q->owner[0].pid, q->owner[0].pid))
        return describeOwners(q, text, size);
    if (q->client && describeSharedPort(s, q, text, size))
        return 1;
    if (q->client && q->search.servers)
        return describeAnswer(q, text, size);
    isFault = q->client && q->search.protocol == ebpfMonSearchCa &&
              describeNameServers(q->client, netns, nameServer, sizeof(nameServer));
    if (isFault)
        snprintf(text, size, "%s", nameServer);
    else if (q->owners)
        isFault = describeOwners(q, text, size);
    else if (q->search.isNever)
        snprintf(text, size, "no answer was seen");
    else
        snprintf(text, size, q->search.first ? "searched, and not answered yet" : "not known: no search was seen");
    return isFault;
}
