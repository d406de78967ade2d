/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "put/putWriter.h"
#include "put/linkWrites.h"
#include "put/threadPuts.h"
#include "put/valueText.h"
#include "ioc/layout.h"
#include "ioc/procNetns.h"
#include "ioc/procInfo.h"

#define PORTS_NS 1000000000ull /* an unknown port is looked for again after this */
#define CLIENTS  256 /* processes that are clients, remembered by pid */
#define CONNECTIONS 256 /* whose texts are remembered */

/* What a local client is. */
typedef struct {
    uint32_t pid;
    uint32_t uid;
    char comm[EBPFMON_COMM_MAX];
    char command[64];
    char container[64];
    char user[40];
} localClient;

static epicsMutexId clientLock; /* guards the clients that are remembered */

static void clientInit(void *unused)
{
    (void)unused;
    clientLock = epicsMutexMustCreate();
}

static localClient clientOf(const struct ebpfMonOwner *own)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;
    static localClient known[CLIENTS];
    localClient *c = &known[own->pid % CLIENTS], copy;

    epicsThreadOnce(&once, clientInit, NULL);
    epicsMutexMustLock(clientLock);

    /* A pid that runs another program now has another comm; the worst case is one stale script name. */
    if (c->pid != own->pid || c->uid != own->uid || strncmp(c->comm, own->comm, EBPFMON_COMM_MAX) != 0) {
        memset(c, 0, sizeof(*c));
        c->pid = own->pid;
        c->uid = own->uid;
        memcpy(c->comm, own->comm, EBPFMON_COMM_MAX);
        if (ebpfMonProcCommand((pid_t)own->pid, c->command, sizeof(c->command)))
            snprintf(c->command, sizeof(c->command), "%.*s", EBPFMON_COMM_MAX, own->comm);
        ebpfMonProcContainer((pid_t)own->pid, c->container, sizeof(c->container));
        ebpfMonProcUser((uid_t)own->uid, c->user, sizeof(c->user));
    }
    copy = *c;
    epicsMutexUnlock(clientLock);
    return copy;
}

static void address(char *buf, size_t size, uint32_t addr, uint16_t port)
{
    char text[INET_ADDRSTRLEN] = "?";
    struct in_addr in = { .s_addr = addr };

    inet_ntop(AF_INET, &in, text, sizeof(text));
    snprintf(buf, size, "%s:%u", text, ntohs(port));
}

void ebpfMonPutWriterSetClient(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner, const char *user,
                       const char *host, ebpfMonPut *put)
{
    address(put->peer, sizeof(put->peer), peer->addr, peer->port);
    if (peer->saddr)
        address(put->server, sizeof(put->server), peer->saddr, peer->sport);
    if (owner->pid) {
        localClient c = clientOf(owner);

        put->peerPid = owner->pid;
        put->peerUid = owner->uid;
        snprintf(put->command, sizeof(put->command), "%s", c.command);
        snprintf(put->container, sizeof(put->container), "%s", c.container);
        snprintf(put->realUser, sizeof(put->realUser), "%s", c.user);
    }
    snprintf(put->user, sizeof(put->user), "%s", user[0] ? user : put->realUser);
    if (host[0])
        snprintf(put->host, sizeof(put->host), "%s", host);
    else
        snprintf(put->host, sizeof(put->host), "%.*s", (int)strcspn(put->peer, ":"), put->peer);
}

/* Whether the connection came in to a server. A device that a driver thread talks to is no client, though
 * that thread read from its socket last. */
static int isServer(ebpfMonTarget *t, uint16_t sport, uint64_t now)
{
    unsigned port = ntohs(sport);

    if (!(t->eventThread.ports[port / 8] & (1u << (port % 8))) && now - t->eventThread.portsAt > PORTS_NS) {
        t->eventThread.portsAt = now;
        ebpfMonProcListening(t->pid, t->eventThread.ports);
    }
    return !!(t->eventThread.ports[port / 8] & (1u << (port % 8)));
}

/* A client's names, put together once for each connection: many puts come through one. */
static void client(const struct ebpfMonWho *who, ebpfMonPut *put)
{
    static struct {
        struct ebpfMonPeer peer;
        struct ebpfMonOwner owner;
        char user[EBPFMON_USER_MAX], host[EBPFMON_HOST_MAX];
        ebpfMonPut put; /* its author alone */
    } known[CONNECTIONS];
    unsigned i = (who->peer.addr ^ who->peer.port * 40503u ^ who->peer.sport) % CONNECTIONS;
    ebpfMonPut *k = &known[i].put;

    if (memcmp(&known[i].peer, &who->peer, sizeof(who->peer)) != 0 || known[i].owner.pid != who->owner.pid ||
        known[i].owner.uid != who->owner.uid ||
        strncmp(known[i].owner.comm, who->owner.comm, sizeof(who->owner.comm)) != 0 ||
        strncmp(known[i].user, who->user, sizeof(who->user)) != 0 ||
        strncmp(known[i].host, who->host, sizeof(who->host)) != 0) {
        memset(&known[i], 0, sizeof(known[i]));
        known[i].peer = who->peer;
        known[i].owner = who->owner;
        snprintf(known[i].user, sizeof(known[i].user), "%.*s", EBPFMON_USER_MAX - 1, who->user);
        snprintf(known[i].host, sizeof(known[i].host), "%.*s", EBPFMON_HOST_MAX - 1, who->host);
        ebpfMonPutWriterSetClient(&who->peer, &who->owner, known[i].user, known[i].host, k);
    }
    memcpy(put->peer, k->peer, sizeof(put->peer));
    memcpy(put->server, k->server, sizeof(put->server));
    memcpy(put->command, k->command, sizeof(put->command));
    memcpy(put->container, k->container, sizeof(put->container));
    memcpy(put->realUser, k->realUser, sizeof(put->realUser));
    memcpy(put->user, k->user, sizeof(put->user));
    memcpy(put->host, k->host, sizeof(put->host));
    put->peerPid = k->peerPid;
    put->peerUid = k->peerUid;
}

static const char *recordName(ebpfMonTarget *t, uint64_t precord)
{
    long index = t->cat && precord ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;

    return index >= 0 ? ebpfMonCatalogueName(t->cat, (uint32_t)index) : "";
}

static int isMain(const struct ebpfMonHead *head)
{
    return head->tid == head->tgid;
}

void ebpfMonPutWriterReadScan(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonField *f;
    uint8_t data[2];
    ebpfMonValue v = { .data = data, .len = sizeof(data), .type = ebpfMonDbfMenu, .size = 2, .count = 1 };

    buf[0] = 0;
    f = index >= 0 ? ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[index].rtype, "SCAN") : NULL;
    if (f && ebpfMonMemReadNow(t->pid, precord + f->offset, data, sizeof(data)) == 0)
        ebpfMonValueText(t, f, precord, &v, buf, size);
}

/* What queues a record for scanOnce: a CP link (dbCa.c), or a put that found it busy (RPRO, dbAccess.c). */
static void onceCause(ebpfMonTarget *t, uint64_t precord, char *buf, size_t size)
{
    long index = t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;
    const ebpfMonRecType *rt = index >= 0 ? &t->cat->rtype[t->cat->rec[index].rtype] : NULL;
    char name[EBPFMON_NAME_SIZE + 8] = "";
    unsigned n = 0;

    for (uint32_t i = 0; rt && i < rt->fieldCount; i++) {
        const ebpfMonField *f = &t->cat->field[rt->firstField + i];
        struct layoutPvLink link;

        if (f->type != ebpfMonDbfInlink || ebpfMonMemReadNow(t->pid, precord + f->offset, &link, sizeof(link)) ||
            link.type != LAYOUT_LINK_CA || !(link.pvlMask & (LAYOUT_PVL_CP | LAYOUT_PVL_CPP)))
            continue;
        if (n++ == 0 && ebpfMonMemReadNow(t->pid, link.pvname, name, sizeof(name)) == 0)
            name[sizeof(name) - 1] = 0;
    }
    if (n == 1)
        snprintf(buf, size, "CP link from %s", name[0] ? name : "?");
    else if (n)
        snprintf(buf, size, "one of %u CP links", n);
    else
        snprintf(buf, size, "queued once");
}

/* Base names its threads by their job (dbScan.c, callback.c, dbCa.c). */
void ebpfMonPutWriterDescribeThread(ebpfMonTarget *t, const char *comm, int isMainThread, uint64_t root, char *buf, size_t size)
{
    char scan[40];

    if (strncmp(comm, "scan-", 5) == 0) {
        snprintf(buf, size, "scan %.10s second", comm + 5);
    } else if (strncmp(comm, "cb", 2) == 0) {
        ebpfMonPutWriterReadScan(t, root, scan, sizeof(scan));
        if (strcmp(scan, "I/O Intr") == 0 || strcmp(scan, "Event") == 0)
            snprintf(buf, size, "%s", scan);
        else
            snprintf(buf, size, "callback in %.15s", comm);
    } else if (strcmp(comm, "scanOnce") == 0) {
        onceCause(t, root, buf, size);
    } else if (isMainThread) {
        snprintf(buf, size, "%s", t->running ? "shell" : "start-up");
    } else {
        snprintf(buf, size, "thread %.15s", comm);
    }
}

/* A script interpreter has no iocsh in its main thread. */
static int hasShell(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev)
{
    (void)t;
    return isMain(&ev->head) && strncmp(ev->who.comm, "python", 6) != 0;
}

/* A client that is an IOC that we watch, perhaps this one: which of its records wrote? */
static void throughCaLink(const struct ebpfMonPutEvent *ev, uint32_t pid, ebpfMonPut *put)
{
    char channel[EBPFMON_CHANNEL_MAX];

    snprintf(channel, sizeof(channel), "%.*s", EBPFMON_CHANNEL_MAX - 1, ev->channel);
    ebpfMonLinkWritesSetWriter(pid, channel, ev->head.ktime, put);
}

/* The output link that has this DBADDR. */
static int throughLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put)
{
    ebpfMonLinkOwner owner;

    if (!t->cat || !addr || ebpfMonLinkTableFind(t->cat->links, addr - offsetof(struct layoutDbChannel, addr), &owner) ||
        owner.rec >= t->cat->count)
        return 0;
    put->through = ebpfMonByLink;
    snprintf(put->link, sizeof(put->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, owner.rec),
             t->cat->field[owner.field].name);
    return 1;
}

void ebpfMonPutWriterFindLateLink(ebpfMonTarget *t, uint64_t addr, ebpfMonPut *put)
{
    int isStartUp = put->through == ebpfMonByInit;

    if (!throughLink(t, addr, put))
        return;
    if (isStartUp)
        snprintf(put->cause, sizeof(put->cause), "%s", ebpfMonThroughName(ebpfMonByInit));
    else
        ebpfMonPutWriterDescribeThread(t, put->thread, 0, 0, put->cause, sizeof(put->cause));
}

void ebpfMonPutWriterDescribeClient(const ebpfMonPut *put, char *buf, size_t size)
{
    buf[0] = 0;
    if (put->peer[0])
        snprintf(buf, size, "put by %.39s@%.40s", put->user, put->host);
}

/* What started the chain that the put is made in: the thread's job, and what handOvers it that. */
static void why(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, uint64_t root, ebpfMonPut *put)
{
    const struct ebpfMonSourceChain *source = &ev->source;
    char begun[96] = "", comm[EBPFMON_COMM_MAX], job[40] = "";
    const char *given = source->begin ? recordName(t, source->root) : "";

    ebpfMonPutWriterDescribeThread(t, put->thread, isMain(&ev->head), root, put->cause, sizeof(put->cause));
    if (!given[0])
        return;
    snprintf(begun, sizeof(begun), "%s", ebpfMonThreadPutsFindWriter(t->iocId, source));
    if (!begun[0]) {
        snprintf(comm, sizeof(comm), "%.*s", EBPFMON_COMM_MAX - 1, source->comm);
        ebpfMonPutWriterDescribeThread(t, comm, (int)source->isMain, source->root, begun, sizeof(begun));
    }
    snprintf(job, sizeof(job), "%.39s", put->cause);
    snprintf(put->cause, sizeof(put->cause), "%s, chain of %s, %s", job, given, begun);
}

void ebpfMonPutWriterFind(ebpfMonTarget *t, const struct ebpfMonPutEvent *ev, const struct ebpfMonCauseEvent *cause,
                   ebpfMonPut *put)
{
    const struct ebpfMonWho *who = &ev->who;
    int fromClient = who->isCA || (who->peer.addr && isServer(t, who->peer.sport, ev->head.ktime));
    uint64_t root = ev->root;

    if (fromClient)
        client(who, put);
    snprintf(put->thread, sizeof(put->thread), "%.*s", EBPFMON_COMM_MAX - 1, who->comm);

    if (throughLink(t, ev->addr, put)) {
        /* root and cause follow */
    } else if (fromClient) {
        put->through = who->isCA ? ebpfMonByCa : ebpfMonByPva;
        if (put->peerPid && (!root || root == ev->precord))
            throughCaLink(ev, put->peerPid, put);
        return;
    } else if (!t->running && isMain(&ev->head)) {
        put->through = ebpfMonByInit;
    } else {
        put->through = hasShell(t, ev) ? ebpfMonByShell : ebpfMonByThread;
        if (strncmp(put->thread, "dbCaLink", 8) == 0) /* dbCa.c */
            throughCaLink(ev, (uint32_t)t->pid, put);
        if (put->through == ebpfMonByCaLink)
            return;
    }
    if (put->through != ebpfMonByLink && root == ev->precord) {
        root = 0; /* its own lock, taken for the put */
        cause = NULL; /* that is busy: what it is busy with made no put of this thread */
    }
    if (cause) {
        /* the second half of asynchronous processing: for whom it was begun */
        uint64_t first = cause->root ? cause->root : root;

        if (cause->who.isCA || (cause->who.peer.addr && isServer(t, cause->who.peer.sport, ev->head.ktime))) {
            client(&cause->who, put);
            ebpfMonPutWriterDescribeClient(put, put->cause, sizeof(put->cause));
        } else {
            char comm[EBPFMON_COMM_MAX];

            snprintf(comm, sizeof(comm), "%.*s", EBPFMON_COMM_MAX - 1, cause->who.comm);
            ebpfMonPutWriterDescribeThread(t, comm, (int)cause->byMain, first, put->cause, sizeof(put->cause));
        }
        snprintf(put->root, sizeof(put->root), "%s", recordName(t, first));
        return;
    }
    snprintf(put->root, sizeof(put->root), "%s", recordName(t, root));
    if (fromClient)
        ebpfMonPutWriterDescribeClient(put, put->cause, sizeof(put->cause));
    else if (put->root[0] || put->through == ebpfMonByLink)
        why(t, ev, root, put);
}

int ebpfMonPutWriterFindLinkWrite(ebpfMonTarget *t, const struct ebpfMonCauseEvent *ev, ebpfMonLinkWrite *l)
{
    uint32_t index;
    const ebpfMonField *f = t->cat ? ebpfMonCatalogueFieldAt(t->cat, ev->link, &index) : NULL;
    static ebpfMonPut who; /* its client alone; event thread */

    memset(l, 0, sizeof(*l));
    if (!f)
        return 0;
    l->pid = (uint32_t)t->pid;
    l->at = ev->head.ktime;
    l->chain = (ebpfMonChainId){ .iocId = ev->begin ? t->iocId : 0, .tid = ev->head.tid, .begin = ev->begin };
    snprintf(l->channel, sizeof(l->channel), "%.*s", EBPFMON_CHANNEL_MAX - 1, ev->name);
    snprintf(l->link, sizeof(l->link), "%s.%.6s", ebpfMonCatalogueName(t->cat, index), f->name);
    snprintf(l->ioc, sizeof(l->ioc), "%s", t->name);
    snprintf(l->root, sizeof(l->root), "%s", recordName(t, ev->root));
    if (ev->who.isCA || (ev->who.peer.addr && isServer(t, ev->who.peer.sport, ev->head.ktime))) {
        client(&ev->who, &who);
        ebpfMonPutWriterDescribeClient(&who, l->cause, sizeof(l->cause));
    } else {
        char comm[EBPFMON_COMM_MAX];

        snprintf(comm, sizeof(comm), "%.*s", EBPFMON_COMM_MAX - 1, ev->who.comm);
        ebpfMonPutWriterDescribeThread(t, comm, (int)ev->byMain, ev->root, l->cause, sizeof(l->cause));
    }
    return 1;
}

/* Who, and through what, in the words of PUT_LAST. A client is who it claims to be until the kernel knows better: its
 * own process' user and command stand beside the claim. */
void ebpfMonPutWriterMakeTexts(ebpfMonPut *put)
{
    char local[160] = "", why[360] = "";
    int n = 0;

    if (put->peer[0]) {
        if (put->peerPid)
            snprintf(local, sizeof(local), " %s[%u]%s%s", put->command, put->peerPid,
                     put->container[0] ? " in " : "", put->container);
        snprintf(put->who, sizeof(put->who), "%s@%s%s", put->user[0] ? put->user : "?", put->host, local);
    } else if (put->through == ebpfMonByShell || put->through == ebpfMonByInit) {
        snprintf(put->who, sizeof(put->who), "%s", ebpfMonThroughName(put->through));
    } else {
        snprintf(put->who, sizeof(put->who), "thread %s", put->thread);
    }
    if (put->link[0])
        n = snprintf(why, sizeof(why), ", %s %s%s%s", ebpfMonThroughName(put->through), put->link,
                     put->linkIoc[0] ? " of " : "", put->linkIoc);
    if (put->root[0] && n < (int)sizeof(why))
        n += snprintf(why + n, sizeof(why) - (size_t)n, ", chain of %s", put->root);
    if (put->cause[0] && n < (int)sizeof(why))
        snprintf(why + n, sizeof(why) - (size_t)n, ", %s", put->cause);
    if (put->peer[0] && put->through != ebpfMonByLink)
        snprintf(put->origin, sizeof(put->origin), "%s %s%s%s%s", put->through == ebpfMonByPva ? "PVA" : "CA",
                 put->peer, put->realUser[0] ? " uid " : "", put->realUser, why);
    else if (why[0])
        snprintf(put->origin, sizeof(put->origin), "%s", why + 2);
    else
        snprintf(put->origin, sizeof(put->origin), "in the IOC");
}
