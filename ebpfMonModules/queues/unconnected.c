/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <epicsThread.h>
#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "host/memory.h"
#include "host/netnsSocket.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procStat.h"
#include "host/serverSockets.h"
#include "host/tcpSockets.h"
#include "ioc/catalogue.h"
#include "model/put.h"
#include "queues/iocLinks.h"
#include "queues/refusals.h"
#include "queues/unconnected.h"
#include "search/search.h"
#include "put/putRoom.h"
#include "watch/target.h"

/* --- reasons ---
 *
 * Why a name is not reached, in a sentence: from the search (search/search.h), the sockets of the client's network
 * namespace, the environment of the client, and the records of watched IOCs. It says what was seen, and guesses
 * nothing. */

#define EBPFMON_REASON_SOCKETS 2048 /* sockets of a look, at most */
#define EBPFMON_REASON_OWNERS  2

/* An IOC that has a record of this name. */
typedef struct {
    pid_t pid;
    char  name[EBPFMON_IOCNAME_SIZE];
    char  noField[16];      /* the field of the name that its record has not; "": it has it */
} ebpfMonReasonOwner;

typedef struct {
    ebpfMonSearchState search;
    pid_t    client;        /* its process; 0: not known */
    unsigned owners;        /* that were found, EBPFMON_REASON_OWNERS at most */
    ebpfMonReasonOwner owner[EBPFMON_REASON_OWNERS];
} ebpfMonReasonQuestion;

typedef struct {
    uint32_t netns, addr;   /* network byte order, the port too; 0: any */
    uint16_t port;
    int      isTcp;
    unsigned long inode;
    pid_t    pid;           /* 0: not known */
} ebpfMonReasonSocket;

/* The UDP sockets of this host, of its connections those from wanted ports, and who has them. */
typedef struct {
    unsigned count;
    ebpfMonReasonSocket socket[EBPFMON_REASON_SOCKETS];
} ebpfMonReasonSockets;

#define CA_PORT       5064
#define CA_MINOR_MIN  4          /* CA_MINIMUM_SUPPORTED_VERSION (caProto.h) */
#define PVA_PORT      5075
#define SYN_SENT      2          /* include/net/tcp_states.h */
#define BACKLOG_SECONDS 0.2
#define NAME_SERVERS  8          /* of a client that are looked at */

/* --- sockets ----------------------------------------------------------------------------------------------------- */

typedef struct {
    ebpfMonReasonSockets *to;
    const uint16_t *port;
    unsigned ports;
    uint32_t netns;
    int      isTcp;
} socketLook;

static int isWantedPort(const socketLook *l, uint16_t port)
{
    unsigned i = 0;

    while (i < l->ports && l->port[i] != port)
        i++;
    return i < l->ports;
}

static int addSocket(void *arg, const ebpfMonTcpRow *row)
{
    socketLook *l = arg;

    if (l->to->count == EBPFMON_REASON_SOCKETS)
        return 1;
    if (!l->isTcp || isWantedPort(l, row->localPort))
        l->to->socket[l->to->count++] = (ebpfMonReasonSocket){ .netns = l->netns, .addr = row->local,
            .port = row->localPort, .isTcp = l->isTcp, .inode = row->inode };
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

    for (unsigned i = 0; i < l->to->count; i++)
        if (l->isWanted[i] && l->to->socket[i].inode == inode && !l->to->socket[i].pid)
            l->to->socket[i].pid = l->pid;
}

static void findServerOwners(ebpfMonReasonSockets *s, const uint8_t *isWanted)
{
    pid_t *pids = NULL;
    int n = ebpfMonProcList(&pids);

    for (int i = 0; i < n; i++) {
        ownerLook l = { s, isWanted, pids[i] };

        ebpfMonTcpOwned(pids[i], noteOwned, &l);
    }
    free(pids);
}

/* Reads the sockets in the namespaces of these processes, and in our own; then who has those at the wanted ports
 * (network byte order). Looks at the files of all processes if there is one: milliseconds. */
static void readReasonSockets(ebpfMonReasonSockets *s, const pid_t *pids, unsigned count, const uint16_t *port,
                              unsigned ports)
{
    ebpfMonNetns *list = NULL;
    int n = ebpfMonProcNetnsList(pids, count, &list);
    uint8_t *isWanted = calloc(EBPFMON_REASON_SOCKETS, 1);
    socketLook l = { .to = s, .port = port, .ports = ports };
    int isAny = 0;

    s->count = 0;
    for (int i = 0; i < n; i++) {
        l.netns = list[i].netns;
        l.isTcp = 0;
        ebpfMonUdpRows(list[i].pid, addSocket, &l);
        l.isTcp = 1; /* name servers are asked over TCP */
        ebpfMonTcpRows(list[i].pid, EBPFMON_TCP_STATE(ebpfMonTcpEstablished), addSocket, &l);
    }
    for (unsigned i = 0; isWanted && i < s->count; i++)
        isAny |= isWanted[i] = isWantedPort(&l, s->socket[i].port) && s->socket[i].inode;
    if (isAny)
        findServerOwners(s, isWanted);
    free(isWanted);
    free(list);
}

static int takesFrom(const ebpfMonReasonSocket *socket, uint32_t netns, uint32_t addr, uint16_t port)
{
    return socket->port == port && socket->netns == netns && (!socket->addr || socket->addr == addr);
}

/* The socket from which it was sent; NULL: its process is not known. */
static const ebpfMonReasonSocket *findSender(const ebpfMonReasonSockets *s, const struct ebpfMonPeer *way)
{
    for (unsigned i = 0; way->addr && i < s->count; i++) /* 0: IPv6 */
        if (s->socket[i].pid && takesFrom(&s->socket[i], way->netns, way->addr, way->port))
            return &s->socket[i];
    return NULL;
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

/* "10.1.2.3", "10.1.2.3:5064". 0, or -1: it is a name, or nothing. */
static int parseAddress(const char *text, unsigned n, uint32_t *addr, uint16_t *port)
{
    char host[64];
    struct in_addr in;

    if (sscanf(text, "%63[0-9.]:%u", host, &n) < 1 || n > 65535 || inet_pton(AF_INET, host, &in) != 1)
        return -1;
    *addr = in.s_addr;
    *port = htons((uint16_t)n);
    return 0;
}

/* The first of EPICS_CA_NAME_SERVERS, or EPICS_PVA_NAME_SERVERS, that cannot be reached. Nonzero: there is one. */
static int describeNameServers(pid_t client, ebpfMonSearchProtocol protocol, uint32_t netns, char *text, size_t size)
{
    int isPva = protocol == ebpfMonSearchPva;
    char list[1000], *rest = list, *one;
    unsigned n = 0;

    ebpfMonProcReadVariable(client, isPva ? "EPICS_PVA_NAME_SERVERS" : "EPICS_CA_NAME_SERVERS", list, sizeof(list));
    while ((one = strsep(&rest, " \t")) != NULL && n < NAME_SERVERS) {
        char what[60], end[EBPFMON_PEERTEXT_SIZE + 8];
        static const uint32_t none[4];
        uint32_t addr;
        uint16_t port;

        if (!one[0] || parseAddress(one, isPva ? PVA_PORT : CA_PORT, &addr, &port))
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
 * SO_REUSEADDR). Nonzero: so it is; "pid" gets both. */
static int findSharedPort(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, pid_t pid[2])
{
    const struct ebpfMonPeer *way = &q->search.way;
    const ebpfMonReasonSocket *first = NULL;

    /* a server of pvAccess passes such a search on to the others (CMD_ORIGIN_TAG) */
    if (q->search.protocol == ebpfMonSearchPva || !way->saddr)
        return 0;
    for (unsigned i = 0; i < s->count; i++) {
        const ebpfMonReasonSocket *socket = &s->socket[i];

        if (!socket->pid || socket->isTcp || !takesFrom(socket, way->netns, way->saddr, way->sport) ||
            !isOwnAddress(socket->pid, way->saddr))
            continue;
        pid[first != NULL] = socket->pid;
        if (first && first->pid != socket->pid && first->addr == socket->addr)
            return 1;
        first = first ? first : socket;
    }
    return 0;
}

/* Nonzero, as describeReason. It says, too, which of the two has the name: a watched IOC, or who has answered a search
 * that came to both. */
static int describeSharedPort(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const struct ebpfMonPeer *a = &q->search.server[0];
    struct ebpfMonPeer peer = { .saddr = a->saddr, .sport = a->sport, .netns = a->netns, .addr = a->saddr };
    char one[100], two[100];
    pid_t pid[2], holder;

    if (!findSharedPort(s, q, pid))
        return 0;
    nameProcess(pid[0], one, sizeof(one));
    nameProcess(pid[1], two, sizeof(two));
    snprintf(text, size, "it is searched by unicast at UDP port %u, which %s and %s share: only one of them gets it",
             ntohs(q->search.way.sport), one, two);
    holder = q->owners == 1 ? q->owner[0].pid : !q->owners && q->search.servers == 1 ?
             ebpfMonServerSocketsFindProcess(&peer) : 0;
    if (holder && (holder == pid[0] || holder == pid[1]))
        ebpfMonTextAdd(text, size, "; pid %d has the name", (int)holder);
    return 1;
}

typedef struct {
    uint16_t port;
    uint32_t waiting, room;
} backlogLook;

/* Of a socket that listens these are connections that nobody has accepted, and how many may wait (tcp_diag.c). */
static int noteBacklog(void *arg, const struct inet_diag_msg *socket, size_t bytes)
{
    backlogLook *l = arg;

    if (socket->id.idiag_sport != l->port || socket->idiag_rqueue < l->waiting)
        return 0;
    l->waiting = socket->idiag_rqueue;
    l->room = socket->idiag_wqueue;
    return 0;
}

/* Nonzero: more connections wait for the process at this port than the kernel takes (sk_acceptq_is_full). */
static int hasFullBacklog(pid_t pid, uint16_t port, uint32_t *waiting)
{
    const ebpfMonSockDiagRequest request = { .family = AF_UNSPEC, .states = EBPFMON_TCP_STATE(ebpfMonTcpListen) };
    backlogLook l = { .port = port };
    int file = ebpfMonSockDiagOpen(pid, BACKLOG_SECONDS);

    if (file < 0)
        return 0;
    ebpfMonSockDiagRead(file, &request, noteBacklog, &l);
    close(file);
    *waiting = l.waiting;
    return l.waiting > l.room;
}

/* What keeps a process of this host from accepting connections; "": nothing that is seen. */
static void describeServer(const struct ebpfMonPeer *server, char *text, size_t size)
{
    struct ebpfMonPeer peer = { .saddr = server->saddr, .sport = server->sport, .netns = server->netns,
                                .addr = server->saddr };
    pid_t pid = ebpfMonServerSocketsFindProcess(&peer);
    ebpfMonProcStat stat;
    char name[100];
    uint32_t waiting;

    text[0] = 0;
    if (!pid || ebpfMonProcStatGet(pid, &stat))
        return;
    nameProcess(pid, name, sizeof(name));
    if (ebpfMonProcStandsStill(pid, pid))
        snprintf(text, size, ": %s stands still, a signal or a debugger has stopped it", name);
    else if (stat.fdLimit && stat.fds >= stat.fdLimit)
        snprintf(text, size, ": %s has all of its %u files open (ulimit -n), so it accepts no connection", name,
                 stat.fdLimit);
    else if (hasFullBacklog(pid, server->sport, &waiting))
        snprintf(text, size, ": %s does not accept: %u connections wait, and no more may", name, waiting);
}

/* It was answered, and there is no channel. */
static int describeAnswer(const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const struct ebpfMonPeer *a = &q->search.server[0], *b = &q->search.server[1];
    char end[EBPFMON_PEERTEXT_SIZE + 8], other[EBPFMON_PEERTEXT_SIZE + 8], what[60], why[200];

    ebpfMonPeerTextEnd(a->saddr, a->saddr6, a->sport, end, sizeof(end));
    if (q->search.servers > 1) {
        ebpfMonPeerTextEnd(b->saddr, b->saddr6, b->sport, other, sizeof(other));
        snprintf(text, size, "answered by two servers, %s and %s", end, other);
        return 1;
    }
    describePort(q->client, a->netns, a->saddr, a->sport, what, sizeof(what));
    describeServer(a, why, sizeof(why));
    if (what[0])
        snprintf(text, size, "answered by %s, whose TCP port %s%s", end, what, why);
    else
        snprintf(text, size, "answered by %s, and not connected%s", end, why);
    return 1;
}

/* Nonzero: the search went to a UDP port, or to an own address of this host, where the process does not listen. */
static int isElsewhere(const ebpfMonReasonSockets *s, const struct ebpfMonPeer *way, pid_t owner)
{
    const ebpfMonReasonSocket *sender = findSender(s, way);
    int isOwn = way->saddr && isOwnAddress(owner, way->saddr);

    if (sender && sender->isTcp)
        return 0;
    for (unsigned i = 0; i < s->count; i++) {
        const ebpfMonReasonSocket *socket = &s->socket[i];

        if (socket->port == way->sport && !socket->isTcp && socket->netns == way->netns &&
            (socket->pid == owner || !socket->pid) && (!isOwn || !socket->addr || socket->addr == way->saddr))
            return 0;
    }
    return way->saddr && s->count && s->count < EBPFMON_REASON_SOCKETS;
}

/* Where the client searches, if that is not where the IOC listens. */
static void addDestination(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const struct ebpfMonPeer *way = &q->search.way;
    int isPva = q->search.protocol == ebpfMonSearchPva;
    char end[EBPFMON_PEERTEXT_SIZE + 8], list[200] = "";

    ebpfMonProcReadVariable(q->client, isPva ? "EPICS_PVA_ADDR_LIST" : "EPICS_CA_ADDR_LIST", list, sizeof(list));
    if (!strchr(list, ' ') && isElsewhere(s, way, q->owner[0].pid)) { /* of several only the last one is known */
        ebpfMonPeerTextEnd(way->saddr, way->saddr6, way->sport, end, sizeof(end));
        ebpfMonTextAdd(text, size, "; the last search went to UDP %s, where it does not listen", end);
    }
    if (list[0] && !q->search.first)
        ebpfMonTextAdd(text, size, "; the client was started with EPICS_%s_ADDR_LIST=%.80s%s", isPva ? "PVA" : "CA",
                       list, strlen(list) > 80 ? " …" : "");
}

/* Watched IOCs that have the record. Nonzero: that is a fault. */
static int describeOwners(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    const ebpfMonReasonOwner *o = q->owner;
    int isOwn = o[0].pid == q->client, isStill = ebpfMonProcStandsStill(o[0].pid, o[0].pid);

    if (q->owners > 1)
        snprintf(text, size, "IOC %s (pid %d) and IOC %s (pid %d) both have it", o[0].name, (int)o[0].pid, o[1].name,
                 (int)o[1].pid);
    else if (o[0].noField[0])
        snprintf(text, size, "IOC %s (pid %d) has the record, and it has no field %s", o[0].name, (int)o[0].pid,
                 o[0].noField);
    else if (isStill)
        snprintf(text, size, "IOC %s (pid %d) has it, and stands still: a signal or a debugger has stopped it",
                 o[0].name, (int)o[0].pid);
    else
        snprintf(text, size, isOwn ? "IOC %s (pid %d) has it itself, and its own client does not reach its own server" :
                 "IOC %s (pid %d) has it, and no answer of it was seen", o[0].name, (int)o[0].pid);
    if (q->owners == 1 && !o[0].noField[0] && !isStill && q->client)
        addDestination(s, q, text, size);
    return 1;
}

/* Sets the sentence. Nonzero: something is wrong, more than that no answer was seen. */
static int describeReason(const ebpfMonReasonSockets *s, const ebpfMonReasonQuestion *q, char *text, size_t size)
{
    uint32_t netns = q->search.way.netns ? q->search.way.netns : q->client ? ebpfMonProcNetns(q->client) : 0;
    char nameServer[160] = "";
    int isFault;

    if (q->owners == 1 && ebpfMonProcStandsStill(q->owner[0].pid, q->owner[0].pid))
        return describeOwners(s, q, text, size);
    if (q->search.minor && q->search.minor < CA_MINOR_MIN) {
        snprintf(text, size, "the client speaks Channel Access 4.%u, and servers of EPICS Base answer to 4.%d and "
                 "later", q->search.minor, CA_MINOR_MIN);
        return 1;
    }
    if (describeSharedPort(s, q, text, size))
        return 1;
    if (q->client && q->search.servers && !q->search.isNever) /* else it was the search of another client */
        return describeAnswer(q, text, size);
    isFault = q->client && describeNameServers(q->client, q->search.protocol, netns, nameServer, sizeof(nameServer));
    if (isFault)
        snprintf(text, size, "%s", nameServer);
    else if (q->owners)
        isFault = describeOwners(s, q, text, size);
    else if (q->search.isNever)
        snprintf(text, size, "no answer was seen");
    else
        snprintf(text, size, q->search.first ? "searched, and not answered yet" : "not known: no search was seen");
    return isFault;
}

/* --- what is not connected --- */

#define PERIOD      5.0   /* s, as long as something is not connected */
#define COST_MOST   0.005 /* cores */
#define COST_NS     (10 * EBPFMON_SECOND_NS) /* the cost is a mean over this time */
#define IOCS_MAX    256
#define NAMES_MAX   100   /* never found, that are looked at */
#define PORTS_MAX   (2 * (NAMES_MAX + EBPFMON_UNCONNECTED_ROWS))
#define TOLD_NS      (3600 * EBPFMON_SECOND_NS)
#define TOLD_KEPT    EBPFMON_UNCONNECTED_ROWS
#define TOLD_SECONDS 10.0 /* a fault that is shorter is none: an IOC that restarts */

/* A row before its reason is known. */
typedef struct {
    ebpfMonReasonQuestion q;
    const ebpfMonCaLinkIoc *ioc; /* NULL: another program searches it */
    const ebpfMonCaLink *link;
    const ebpfMonRefusal *refusal; /* NULL: none was seen */
} askedName;

struct ebpfMonUnconnected {
    const ebpfMonModule *module;
    ebpfMonSharedWorker worker;
    ebpfMonModuleCore core;
    /* the thread's own: it reads the memory of IOCs, which may not answer, so it holds no lock */
    ebpfMonCaLinkIoc ioc[IOCS_MAX];
    unsigned iocs;
    ebpfMonSearchState never[NAMES_MAX];
    ebpfMonRefusals *refusals;
    ebpfMonRefusal refused[EBPFMON_REFUSALS_MAX];
    askedName asked[EBPFMON_UNCONNECTED_ROWS];
    unsigned count;
    ebpfMonReasonSockets sockets;
    uint64_t cpu, costSince; /* ns of CPU time since then */
    double   period;
    struct { uint64_t key, at; } told[TOLD_KEPT]; /* monotonic ns; 0: none */
    ebpfMonUnconnectedValues values;
    ebpfMonUnconnectedValues shown; /* under the lock of the published values */
};

ebpfMonUnconnected *ebpfMonUnconnectedNew(const ebpfMonModule *module)
{
    ebpfMonUnconnected *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->module = module;
    u->refusals = ebpfMonRefusalsNew();
    if (!u->refusals) {
        free(u);
        return NULL;
    }
    u->period = PERIOD;
    ebpfMonSharedWorkerInit(&u->worker);
    return u;
}

const ebpfMonUnconnectedValues *ebpfMonUnconnectedGetValues(const ebpfMonUnconnected *u)
{
    return &u->shown;
}

/* --- which IOCs ------------------------------------------------------------------------------------------------- */

/* Under the lock of the targets. */
static void takeIoc(ebpfMonUnconnected *u, const ebpfMonTarget *t)
{
    ebpfMonCaLinkIoc *ioc = NULL;

    for (unsigned i = 0; !ioc && i < u->iocs; i++)
        if (u->ioc[i].id == t->iocId)
            ioc = &u->ioc[i];
    if (!ioc && u->iocs == IOCS_MAX)
        return;
    if (!ioc) {
        ioc = &u->ioc[u->iocs++];
        *ioc = (ebpfMonCaLinkIoc){ .id = t->iocId, .pid = t->pid };
    }
    snprintf(ioc->name, sizeof(ioc->name), "%s", t->name);
    ioc->isSeen = 1;
    if (ioc->cat == t->cat)
        return;
    ebpfMonCatalogueRelease(ioc->cat);
    ioc->cat = ebpfMonCatalogueHold(t->cat);
}

static void takeIocs(ebpfMonUnconnected *u)
{
    unsigned kept = 0;

    ebpfMonTargetsLock(u->core.targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(u->core.targets); t; t = t->next)
        if (!t->gone && t->running && t->cat && t->level > ebpfMonLevelOff)
            takeIoc(u, t);
    ebpfMonTargetsUnlock(u->core.targets);
    for (unsigned i = 0; i < u->iocs; i++)
        if (u->ioc[i].isSeen) {
            u->ioc[kept] = u->ioc[i];
            u->ioc[kept++].isSeen = 0;
        } else {
            ebpfMonIocLinksClear(&u->ioc[i]);
        }
    u->iocs = kept;
}

/* --- what is not connected --------------------------------------------------------------------------------------- */

static void addLink(ebpfMonUnconnected *u, const ebpfMonCaLinkIoc *ioc, const ebpfMonCaLink *link)
{
    askedName *a = &u->asked[u->count];
    char name[EBPFMON_SEARCH_NAME_SIZE];

    u->values.unconnected++;
    if (u->count == EBPFMON_UNCONNECTED_ROWS || ebpfMonIocLinksReadName(ioc, link, name, sizeof(name)))
        return;
    memset(a, 0, sizeof(*a));
    ebpfMonSearchGetState(u->core.search, ebpfMonSearchCa, name, &a->q.search);
    snprintf(a->q.search.name, sizeof(a->q.search.name), "%s", name);
    a->q.client = ioc->pid;
    a->ioc = ioc;
    a->link = link;
    u->count++;
}

/* The row of this name for this client; "isLink": only of a CA link. NULL: there is none. */
static askedName *findAsked(ebpfMonUnconnected *u, const char *name, pid_t client, int isLink)
{
    for (unsigned i = 0; client && i < u->count; i++)
        if (u->asked[i].q.client == client && (u->asked[i].ioc || !isLink) &&
            strcmp(u->asked[i].q.search.name, name) == 0)
            return &u->asked[i];
    return NULL;
}

static void addNames(ebpfMonUnconnected *u, unsigned names)
{
    for (unsigned i = 0; i < names && u->count < EBPFMON_UNCONNECTED_ROWS; i++) {
        const ebpfMonSearchState *name = &u->never[i];
        const ebpfMonReasonSocket *sender = findSender(&u->sockets, &name->way);
        pid_t client = sender ? sender->pid : 0, pid[2];
        askedName *a = &u->asked[u->count];

        if (client == getpid() || findAsked(u, name->name, client, 1))
            continue;
        memset(a, 0, sizeof(*a));
        a->q.search = *name;
        a->q.client = client;
        u->count += client || findSharedPort(&u->sockets, &a->q, pid); /* else the reason is on the client's host */
    }
}

static int isWatched(const ebpfMonUnconnected *u, pid_t pid)
{
    for (unsigned i = 0; i < u->iocs; i++)
        if (u->ioc[i].pid == pid)
            return u->ioc[i].isRead;
    return 0;
}

static void addRefused(ebpfMonUnconnected *u)
{
    unsigned count = ebpfMonRefusalsList(u->refusals, u->refused);

    for (unsigned i = 0; i < count; i++) {
        const ebpfMonRefusal *r = &u->refused[i];
        askedName *a = findAsked(u, r->name, r->client, 0);

        if (!a && r->protocol == ebpfMonSearchCa && isWatched(u, r->client))
            continue; /* the link has changed */
        if (!a && u->count < EBPFMON_UNCONNECTED_ROWS) {
            a = &u->asked[u->count++];
            memset(a, 0, sizeof(*a));
            memcpy(a->q.search.name, r->name, sizeof(a->q.search.name));
            a->q.search.protocol = r->protocol;
            a->q.client = r->client;
        }
        if (a)
            a->refusal = r;
    }
}

/* The ports from which and to which they are searched. */
static void readSockets(ebpfMonUnconnected *u, unsigned names)
{
    uint16_t port[PORTS_MAX];
    pid_t pid[IOCS_MAX + 1];
    unsigned ports = 0, pids = 0;

    pid[pids++] = getpid();
    for (unsigned i = 0; i < u->iocs; i++)
        pid[pids++] = u->ioc[i].pid;
    for (unsigned i = 0; i < names; i++) {
        port[ports++] = u->never[i].way.port;
        port[ports++] = u->never[i].way.sport;
    }
    for (unsigned i = 0; i < u->count; i++)
        if (u->asked[i].q.search.way.sport)
            port[ports++] = u->asked[i].q.search.way.sport;
    u->sockets.count = 0;
    if (ports)
        readReasonSockets(&u->sockets, pid, pids, port, ports);
}

/* Sets noField. "field": what follows the record's name: ".VAL$", ".{…}", or nothing. */
static void checkField(const ebpfMonCatalogue *cat, long record, const char *field, ebpfMonReasonOwner *o)
{
    size_t n = field[0] ? strspn(field + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") : 0;

    snprintf(o->noField, sizeof(o->noField), "%.*s", (int)n, field[0] ? field + 1 : "");
    if (strcmp(o->noField, "RTYP") == 0 || ebpfMonCatalogueFieldNamed(cat, cat->rec[record].rtype, o->noField))
        o->noField[0] = 0;
}

/* The IOCs that have the record of this name. */
static void findOwners(const ebpfMonUnconnected *u, ebpfMonReasonQuestion *q)
{
    uint32_t netns = q->client ? ebpfMonProcNetns(q->client) : q->search.way.netns;
    size_t n = ebpfMonPutGetRecordLength(q->search.name);
    char record[EBPFMON_SEARCH_NAME_SIZE];
    long found;

    snprintf(record, sizeof(record), "%.*s", (int)n, q->search.name);
    for (unsigned i = 0; i < u->iocs && q->owners < EBPFMON_REASON_OWNERS; i++) {
        const ebpfMonCaLinkIoc *ioc = &u->ioc[i];
        ebpfMonReasonOwner *o = &q->owner[q->owners];

        if ((found = ebpfMonCatalogueFind(ioc->cat, record)) < 0 || ebpfMonProcNetns(ioc->pid) != netns)
            continue;
        checkField(ioc->cat, found, q->search.name + n, o);
        o->pid = ioc->pid;
        snprintf(o->name, sizeof(o->name), "%s", ioc->name);
        q->owners++;
    }
}

/* A link of pvAccess by which an IOC asks for the name. 0, or -1: none is known. */
static int describePvaLink(const ebpfMonUnconnected *u, const askedName *a, char *text, size_t size)
{
    const ebpfMonCaLinkIoc *ioc = NULL;
    const ebpfMonIocPvaLink *link;
    int isOne;

    for (unsigned i = 0; i < u->iocs; i++)
        if (u->ioc[i].pid == a->q.client)
            ioc = &u->ioc[i];
    if (!ioc || a->q.search.protocol != ebpfMonSearchPva ||
        (link = ebpfMonIocLinksFindPva(ioc, a->q.search.name, &isOne)) == NULL)
        return -1;
    if (isOne)
        snprintf(text, size, "IOC %s, link %s.%s", ioc->name, ebpfMonCatalogueName(ioc->cat, link->record),
                 ioc->cat->field[link->field].name);
    else
        snprintf(text, size, "IOC %s, several links", ioc->name);
    return 0;
}

static void describeClient(const ebpfMonUnconnected *u, const askedName *a, char *text, size_t size)
{
    char command[64];

    if (!a->ioc && describePvaLink(u, a, text, size) == 0)
        return;
    if (!a->q.client && a->refusal)
        ebpfMonTextSet(text, size, a->refusal->who);
    else if (a->ioc)
        snprintf(text, size, "IOC %s, link %s.%s", a->ioc->name, ebpfMonCatalogueName(a->ioc->cat, a->link->record),
                 a->ioc->cat->field[a->link->field].name);
    else if (!a->q.client)
        ebpfMonPeerTextEnd(a->q.search.way.addr, a->q.search.way.addr6, a->q.search.way.port, text, size);
    else if (ebpfMonProcCommand(a->q.client, command, sizeof(command)) == 0)
        snprintf(text, size, "%s (%d)", command, (int)a->q.client);
}

/* Nonzero, as describeReason. */
static int describeRefusal(const ebpfMonUnconnected *u, const ebpfMonRefusal *r, char *text, size_t size)
{
    struct ebpfMonPeer peer = { .saddr = r->peer.saddr, .sport = r->peer.sport, .netns = r->peer.netns,
                                .addr = r->peer.saddr };
    pid_t pid = r->peer.saddr ? ebpfMonServerSocketsFindProcess(&peer) : 0;
    char end[EBPFMON_PEERTEXT_SIZE + 8], name[100] = "";

    ebpfMonPeerTextEnd(r->peer.saddr, r->peer.saddr6, r->peer.sport, end, sizeof(end));
    for (unsigned i = 0; pid && i < u->iocs; i++)
        if (u->ioc[i].pid == pid)
            snprintf(name, sizeof(name), "IOC %s", u->ioc[i].name);
    if (pid && !name[0])
        nameProcess(pid, name, sizeof(name));
    snprintf(text, size, "%s%s%s refuses the channel%s%s", name, name[0] ? ", " : "", end,
             r->message[0] ? ": " : r->protocol == ebpfMonSearchCa ? ": it has no such record or field, or does not "
             "understand the filter" : "", r->message);
    return 1;
}

static void fillRow(ebpfMonUnconnected *u, askedName *a, uint64_t now, ebpfMonUnconnectedRow *row)
{
    uint64_t real = ebpfMonClockReal();
    char who[sizeof(row->client) + 4];

    findOwners(u, &a->q);
    ebpfMonTextSet(row->pv, sizeof(row->pv), a->q.search.name);
    describeClient(u, a, row->client, sizeof(row->client));
    if (a->refusal)
        row->isFault = describeRefusal(u, a->refusal, row->reason, sizeof(row->reason));
    else
        row->isFault = describeReason(&u->sockets, &a->q, row->reason, sizeof(row->reason));
    if (a->refusal)
        row->seconds = floor((double)(real - a->refusal->first) / 1e9);
    if (a->link)
        row->seconds = floor((double)(now - a->link->since) / 1e9);
    if (a->q.search.first && real > a->q.search.first && (double)(real - a->q.search.first) / 1e9 > row->seconds)
        row->seconds = floor((double)(real - a->q.search.first) / 1e9);
    snprintf(who, sizeof(who), "%s, ", row->client);
    if (a->q.search.isNever)
        ebpfMonSearchSetAsker(u->core.search, a->q.search.protocol, row->pv, who);
}

static uint64_t hashRow(const ebpfMonUnconnectedRow *row)
{
    uint64_t hash = ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, row->pv, strlen(row->pv) + 1);

    return ebpfMonHashFnv64(hash, row->client, strlen(row->client));
}

/* One event of a look: the first of the new faults, and how many others. What comes again within an hour is not new. */
static void tellFaults(ebpfMonUnconnected *u, uint64_t now)
{
    char text[EBPFMON_MODULE_EVENT] = "";
    unsigned more = 0;

    for (unsigned i = 0; i < u->values.rows && u->values.row[i].isFault; i++) {
        const ebpfMonUnconnectedRow *row = &u->values.row[i];
        uint64_t key = hashRow(row);
        unsigned k = 0, oldest = 0;

        for (; k < TOLD_KEPT && (u->told[k].key != key || now - u->told[k].at > TOLD_NS); k++)
            oldest = u->told[k].at < u->told[oldest].at ? k : oldest;
        if (k == TOLD_KEPT && row->seconds < TOLD_SECONDS)
            continue;
        if (k == TOLD_KEPT && !text[0])
            snprintf(text, sizeof(text), "%.100s of %.100s is not connected: %.150s", row->pv, row->client,
                     row->reason);
        else
            more += k == TOLD_KEPT;
        k = k < TOLD_KEPT ? k : oldest;
        u->told[k].key = key;
        u->told[k].at = now;
    }
    if (more)
        ebpfMonTextAdd(text, sizeof(text), "; and %u others", more);
    if (text[0])
        ebpfMonModuleAddEvent(text);
}

static int compareRows(const void *left, const void *right)
{
    const ebpfMonUnconnectedRow *l = left, *r = right;
    int order;

    if (l->isFault != r->isFault)
        return r->isFault - l->isFault;
    order = strcmp(l->pv, r->pv);
    return order ? order : strcmp(l->client, r->client);
}

static void describeState(ebpfMonUnconnectedValues *v)
{
    const ebpfMonUnconnectedRow *first = &v->row[0];
    char text[sizeof(v->state)] = "";

    if (v->faults)
        ebpfMonTextAdd(text, sizeof(text), "%s of %s: %s", first->pv, first->client, first->reason);
    else
        snprintf(text, sizeof(text), "reads %u CA links, %u not connected", v->links, v->unconnected);
    memset(v->state, 0, sizeof(v->state));
    memcpy(v->state, text, strlen(text));
}

/* Reads everything. */
static void makeValues(ebpfMonUnconnected *u)
{
    ebpfMonUnconnectedValues *v = &u->values;
    double cost = v->cost;
    uint64_t now;
    unsigned names;

    memset(v, 0, sizeof(*v));
    v->cost = cost;
    takeIocs(u);
    now = ebpfMonClockMonotonic();
    u->count = 0;
    for (unsigned i = 0; i < u->iocs; i++) {
        ebpfMonCaLinkIoc *ioc = &u->ioc[i];

        ebpfMonIocLinksUpdate(ioc, now);
        v->links += ioc->isRead ? (unsigned)ioc->links : 0;
        for (size_t k = 0; ioc->isRead && k < ioc->links; k++)
            if (!ioc->link[k].isConnected)
                addLink(u, ioc, &ioc->link[k]);
    }
    names = ebpfMonSearchListNever(u->core.search, u->never, NAMES_MAX);
    readSockets(u, names);
    addNames(u, names);
    addRefused(u);
    for (v->rows = 0; v->rows < u->count; v->rows++) {
        fillRow(u, &u->asked[v->rows], now, &v->row[v->rows]);
        v->faults += v->row[v->rows].isFault != 0;
        ebpfMonWorkerGiveSignHere();
    }
    qsort(v->row, v->rows, sizeof(v->row[0]), compareRows);
    tellFaults(u, now);
    describeState(v);
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Sets the cost, and the period that keeps it small: "cpu" ns were used for a look. */
static void countCost(ebpfMonUnconnected *u, uint64_t cpu)
{
    uint64_t now = ebpfMonClockMonotonic();
    double needed = (double)cpu / 1e9 / COST_MOST;

    u->period = needed > PERIOD ? needed : PERIOD;
    u->cpu += cpu;
    if (now - u->costSince < COST_NS)
        return;
    u->values.cost = floor(1e5 * (double)u->cpu / (double)(now - u->costSince) + 0.5) / 1e3;
    u->cpu = 0;
    u->costSince = now;
}

static void runUnconnected(ebpfMonWorker *worker, void *arg)
{
    ebpfMonUnconnected *u = arg;

    u->costSince = ebpfMonClockMonotonic();
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t before = ebpfMonForeignGetCpu(), now;

        makeValues(u);
        countCost(u, ebpfMonForeignGetCpu() - before);
        ebpfMonModuleShowValues(u->module, &u->shown, &u->values, sizeof(u->values));
        now = ebpfMonClockMonotonic();
        ebpfMonWorkerWait(worker, u->count || u->period > PERIOD ? u->period :
                                      (double)(ebpfMonClockNextLook(now) - now) / 1e9);
    }
}

int ebpfMonUnconnectedBegin(ebpfMonUnconnected *u, const ebpfMonModuleCore *core)
{
    u->core = *core;
    return ebpfMonSharedWorkerSet(&u->worker, ebpfMonWorkerStart("ebpfMonUnconn", epicsThreadPriorityLow,
                                                                 runUnconnected, u));
}

void ebpfMonUnconnectedAddEvent(ebpfMonUnconnected *u, const ebpfMonWireEvent *ev)
{
    ebpfMonRefusalsAddEvent(u->refusals, u->core.put->clients, ev);
}

int ebpfMonUnconnectedStop(ebpfMonUnconnected *u, double seconds)
{
    return ebpfMonSharedWorkerStop(&u->worker, seconds);
}
