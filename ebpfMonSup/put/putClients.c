/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <epicsMutex.h>
#include <arpa/inet.h>
#include <stdint.h>
#include <sys/types.h>
#include <epicsEvent.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "host/tcpSockets.h"
#include "host/procInfo.h"
#include "host/procNetns.h"
#include "host/procRead.h"
#include "put/putClients.h"

/* --- names of users --- */

#define SETS 64 /* of uids */
#define WAYS 4
#define NAME_SIZE 40
#define REFRESH_NS (60 * EBPFMON_SECOND_NS)
#define IDLE_SECONDS 3600.0 /* the worker is woken when there is something to do */

typedef struct {
    uid_t    uid;
    int      isUsed;     /* this place has a uid */
    int      isWanted;   /* the worker is to ask for it */
    int      isKnown;    /* "name" is valid */
    uint64_t askedAt;    /* monotonic ns: when somebody wanted it first */
    uint64_t readAt;     /* monotonic ns: when "name" was read */
    uint64_t usedAt;
    char     name[NAME_SIZE];
} userEntry;

/* A thread that waits for a name. The struct lies on its stack. */
typedef struct waiter {
    struct waiter *next;
    epicsEventId   event;
} waiter;

struct ebpfMonUserNames {
    ebpfMonUserNameReader read; /* fixed, as the next two */
    uint64_t       deadline;  /* ns */
    ebpfMonWorker *worker;
    epicsMutexId   lock;      /* guards what follows */
    userEntry      table[SETS][WAYS];
    waiter        *waiters;
    uint64_t       busySince; /* monotonic ns: the name service was called; 0: it has answered */
};

static userEntry *findEntry(ebpfMonUserNames *names, uid_t uid)
{
    userEntry *set = names->table[uid % SETS];

    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].isUsed && set[i].uid == uid)
            return &set[i];
    return NULL;
}

static userEntry *addEntry(ebpfMonUserNames *names, uid_t uid, uint64_t now)
{
    userEntry *set = names->table[uid % SETS], *oldest = &set[0];

    for (unsigned i = 1; i < WAYS; i++)
        if (set[i].usedAt < oldest->usedAt)
            oldest = &set[i];
    *oldest = (userEntry){ .uid = uid, .isUsed = 1, .isWanted = 1, .askedAt = now, .usedAt = now };
    return oldest;
}

/* The uid that waits longest; 0: none is wanted. */
static int takeWanted(ebpfMonUserNames *names, uid_t *uid)
{
    userEntry *first = NULL;

    epicsMutexMustLock(names->lock);
    for (unsigned i = 0; i < SETS * WAYS; i++) {
        userEntry *e = &names->table[i / WAYS][i % WAYS];

        if (e->isWanted && (!first || e->askedAt < first->askedAt))
            first = e;
    }
    if (first) {
        first->isWanted = 0;
        *uid = first->uid;
        names->busySince = ebpfMonClockMonotonic();
    }
    epicsMutexUnlock(names->lock);
    return first != NULL;
}

static void storeName(ebpfMonUserNames *names, uid_t uid, int hasName, const char *name)
{
    userEntry *e;

    epicsMutexMustLock(names->lock);
    names->busySince = 0;
    e = findEntry(names, uid);
    if (e) { /* else another uid took its place meanwhile */
        if (hasName || !e->isKnown) /* a name service that is down for a while takes no name away */
            ebpfMonTextCopy(e->name, sizeof(e->name), name);
        e->isKnown = 1;
        e->readAt = ebpfMonClockMonotonic();
    }
    for (waiter *w = names->waiters; w; w = w->next)
        epicsEventMustTrigger(w->event);
    epicsMutexUnlock(names->lock);
}

static void runUserNames(ebpfMonWorker *worker, void *arg)
{
    ebpfMonUserNames *names = arg;
    char name[NAME_SIZE];
    uid_t uid;

    ebpfMonWorkerWaitsForOthers(worker); /* the name service */
    while (!ebpfMonWorkerIsStopping(worker)) {
        if (takeWanted(names, &uid))
            storeName(names, uid, names->read(uid, name, sizeof(name)) == 0, name);
        else
            ebpfMonWorkerWait(worker, IDLE_SECONDS);
    }
}

ebpfMonUserNames *ebpfMonUserNamesNew(ebpfMonUserNameReader read, double deadline)
{
    ebpfMonUserNames *names = calloc(1, sizeof(*names));

    if (!names)
        return NULL;
    names->read = read;
    names->deadline = (uint64_t)(deadline * 1e9);
    names->lock = epicsMutexMustCreate();
    names->worker = ebpfMonWorkerStart("ebpfMonUsers", epicsThreadPriorityLow, runUserNames, names);
    if (!names->worker) {
        epicsMutexDestroy(names->lock);
        free(names);
        return NULL;
    }
    return names;
}

int ebpfMonUserNamesFree(ebpfMonUserNames *names, double seconds)
{
    if (!names)
        return 0;
    if (ebpfMonWorkerStop(&names->worker, seconds))
        return -1;
    epicsMutexDestroy(names->lock);
    free(names);
    return 0;
}

static uint64_t subtractTime(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* How long it is worth to wait for this name, ns: not longer than until the name service is found to hang. */
static uint64_t findPatience(const ebpfMonUserNames *names, const userEntry *e, uint64_t now)
{
    uint64_t own = subtractTime(names->deadline, now - e->askedAt);
    uint64_t service = names->busySince ? subtractTime(names->deadline, now - names->busySince) : own;

    return own < service ? own : service;
}

/* The lock is held, and is held again at the return. */
static void waitForAnswer(ebpfMonUserNames *names, uint64_t patience)
{
    waiter self = { .next = names->waiters, .event = epicsEventMustCreate(epicsEventEmpty) }, **at = &names->waiters;

    names->waiters = &self;
    epicsMutexUnlock(names->lock);
    epicsEventWaitWithTimeout(self.event, (double)patience / 1e9);
    epicsMutexMustLock(names->lock);
    while (*at != &self)
        at = &(*at)->next;
    *at = self.next;
    epicsEventDestroy(self.event);
}

int ebpfMonUserNamesFind(ebpfMonUserNames *names, uid_t uid, char *buf, size_t size)
{
    uint64_t now, patience;
    userEntry *e;
    int isKnown;

    epicsMutexMustLock(names->lock);
    now = ebpfMonClockMonotonic(); /* not before: a name that came meanwhile would be newer than now */
    e = findEntry(names, uid);
    if (!e) {
        e = addEntry(names, uid, now);
        ebpfMonWorkerWake(names->worker);
    } else if (e->isKnown && !e->isWanted && now - e->readAt >= REFRESH_NS) {
        e->isWanted = 1;
        e->askedAt = now;
        ebpfMonWorkerWake(names->worker);
    }
    e->usedAt = now;
    while (e && !e->isKnown && (patience = findPatience(names, e, ebpfMonClockMonotonic()))) {
        waitForAnswer(names, patience);
        e = findEntry(names, uid); /* another thread may have put another uid there */
    }
    isKnown = e && e->isKnown;
    if (isKnown)
        snprintf(buf, size, "%s", e->name);
    else
        snprintf(buf, size, "%u", (unsigned)uid);
    epicsMutexUnlock(names->lock);
    return isKnown;
}

/* --- ports of servers ---
 *
 * On which ports servers of a watched IOC listen. A thread of an IOC reads from many sockets; only a connection to such
 * a port is a client's. What a driver thread reads from a device comes from elsewhere. Event thread only. */

#define IOCS_MAX 256 /* beyond that the one that was asked about longest ago makes room */
#define RETRY_NS EBPFMON_SECOND_NS

typedef struct {
    uint32_t iocId;
    uint64_t readAt, usedAt;             /* monotonic ns; readAt 0: never */
    uint8_t  bits[EBPFMON_PORTS_BYTES];  /* by port in host byte order */
} iocPorts;

typedef struct {
    iocPorts *ioc[IOCS_MAX];
    unsigned  count;
} serverPorts;

/* The entry of an IOC, made if need be. NULL without memory. */
static iocPorts *getIoc(serverPorts *ports, uint32_t iocId)
{
    iocPorts *oldest = NULL;

    for (unsigned i = 0; i < ports->count; i++) {
        if (ports->ioc[i]->iocId == iocId)
            return ports->ioc[i];
        if (!oldest || ports->ioc[i]->usedAt < oldest->usedAt)
            oldest = ports->ioc[i];
    }
    if (ports->count < IOCS_MAX) {
        oldest = malloc(sizeof(*oldest));
        if (!oldest)
            return NULL;
        ports->ioc[ports->count++] = oldest;
    }
    memset(oldest, 0, sizeof(*oldest));
    oldest->iocId = iocId;
    return oldest;
}

/* Whether something listens on "port" (network byte order) where the process lives. Reads /proc for a port that is not
 * known, at most once a second for each IOC, so no lock of the event path may be held. "now": monotonic ns. */
static int isServerPort(serverPorts *ports, uint32_t iocId, pid_t pid, uint16_t port, uint64_t now)
{
    iocPorts *ioc = getIoc(ports, iocId);
    unsigned number = ntohs(port), bit = 1u << (number % 8);

    if (!ioc)
        return 0;
    ioc->usedAt = now;
    if (!(ioc->bits[number / 8] & bit) && (!ioc->readAt || now > ioc->readAt + RETRY_NS)) {
        ioc->readAt = now;
        ebpfMonProcListening(pid, ioc->bits);
    }
    return !!(ioc->bits[number / 8] & bit);
}

/* --- clients --- */

#define PROCESSES   256 /* that are clients, remembered by pid */
#define CONNECTIONS 256 /* whose texts are remembered */
#define SAME_NS     EBPFMON_SECOND_NS /* so long a pid is believed to be the same process' */

/* What /proc says of a client's process. */
typedef struct {
    struct ebpfMonOwner owner;
    int      isOther; /* another process has its pid now */
    uint64_t at;      /* monotonic ns, when that was looked at */
    char command[64];
    char container[64];
} clientProcess;

/* A connection with its texts: many puts come through one. */
typedef struct {
    struct ebpfMonPeer  peer;
    struct ebpfMonOwner owner;
    char user[EBPFMON_USER_MAX], host[EBPFMON_HOST_MAX]; /* as claimed */
    int  isComplete; /* the user's name is known */
    uint64_t at;     /* monotonic ns, when its process was looked at */
    struct ebpfMonCertificate certificate; /* account "": none is known */
    ebpfMonPutClient client;
} clientConnection;

struct ebpfMonPutClients {
    ebpfMonUserNames   *users;     /* the caller's */
    ebpfMonOwnerFinder  findOwner;
    ebpfMonCertificateFinder findCertificate;
    epicsMutexId        lock;      /* guards "process" */
    clientProcess       process[PROCESSES];
    /* event thread only */
    serverPorts         ports;
    clientConnection    connection[CONNECTIONS];
};

ebpfMonPutClients *ebpfMonPutClientsNew(ebpfMonUserNames *users, ebpfMonOwnerFinder findOwner,
                                        ebpfMonCertificateFinder findCertificate)
{
    ebpfMonPutClients *clients = calloc(1, sizeof(*clients));

    if (!clients)
        return NULL;
    clients->users = users;
    clients->findOwner = findOwner;
    clients->findCertificate = findCertificate;
    clients->lock = epicsMutexMustCreate();
    return clients;
}

void ebpfMonPutClientsFree(ebpfMonPutClients *clients)
{
    if (!clients)
        return;
    for (unsigned i = 0; i < clients->ports.count; i++)
        free(clients->ports.ioc[i]);
    epicsMutexDestroy(clients->lock);
    free(clients);
}

static int isSameOwner(const struct ebpfMonOwner *a, const struct ebpfMonOwner *b)
{
    return a->pid == b->pid && a->uid == b->uid && a->start == b->start &&
           strncmp(a->comm, b->comm, sizeof(a->comm)) == 0;
}

/* If the pid runs another program now, its comm differs; in the worst case the old name of a script is shown. */
static void findProcess(ebpfMonPutClients *clients, const struct ebpfMonOwner *owner, clientProcess *process)
{
    clientProcess *known = &clients->process[owner->pid % PROCESSES];
    uint64_t now = ebpfMonClockMonotonic();
    int isKnown;

    epicsMutexMustLock(clients->lock);
    *process = *known;
    epicsMutexUnlock(clients->lock);
    isKnown = isSameOwner(&process->owner, owner);
    if (isKnown && (process->isOther || now - process->at < SAME_NS))
        return;
    if (!isKnown) {
        memset(process, 0, sizeof(*process));
        process->owner = *owner;
        if (ebpfMonProcCommand((pid_t)owner->pid, process->command, sizeof(process->command)))
            ebpfMonTextCopyBytes(process->command, sizeof(process->command), owner->comm, EBPFMON_COMM_MAX);
        ebpfMonProcContainer((pid_t)owner->pid, process->container, sizeof(process->container));
    }
    process->at = now;
    process->isOther = ebpfMonProcIsOther((pid_t)owner->pid, owner->start); /* after what was read of it */
    if (!isKnown && process->isOther) {
        ebpfMonTextCopyBytes(process->command, sizeof(process->command), owner->comm, EBPFMON_COMM_MAX);
        process->container[0] = 0;
    }
    epicsMutexMustLock(clients->lock);
    *known = *process;
    epicsMutexUnlock(clients->lock);
}

/* "user": as it is shown. Nonzero: all is known of it. 0: its user's name comes later. */
static int makeClient(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner,
                      const char *user, const char *host, ebpfMonPutClient *client)
{
    int isComplete = 1;

    memset(client, 0, sizeof(*client));
    ebpfMonPeerTextEnd(peer->addr, peer->addr6, peer->port, client->peer, sizeof(client->peer));
    if (peer->saddr)
        ebpfMonPeerTextEnd(peer->saddr, peer->saddr6, peer->sport, client->server, sizeof(client->server));
    if (owner->pid) {
        clientProcess process;

        findProcess(clients, owner, &process);
        client->peerPid = process.isOther ? 0 : owner->pid;
        client->peerUid = owner->uid;
        ebpfMonTextCopy(client->command, sizeof(client->command), process.command);
        ebpfMonTextCopy(client->container, sizeof(client->container), process.container);
        isComplete = ebpfMonUserNamesFind(clients->users, (uid_t)owner->uid, client->realUser,
                                          sizeof(client->realUser));
    }
    ebpfMonTextCopy(client->user, sizeof(client->user), user[0] ? user : client->realUser);
    if (host[0])
        ebpfMonTextCopy(client->host, sizeof(client->host), host);
    else
        ebpfMonPeerTextAddress(peer->addr, peer->addr6, client->host, sizeof(client->host));
    return isComplete;
}

void ebpfMonPutClientsFind(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                           const struct ebpfMonFirst *first, const char *user, const char *host,
                           ebpfMonPutClient *client)
{
    struct ebpfMonOwner owner = { .pid = 0 };
    char claimed[sizeof(client->user)];

    ebpfMonTextCopy(claimed, sizeof(claimed), user);
    ebpfMonTextMarkClaim(claimed, sizeof(claimed));
    clients->findOwner(peer, first, &owner);
    makeClient(clients, peer, &owner, claimed, host, client);
}

void ebpfMonPutClientsFindOuter(ebpfMonPutClients *clients, const struct ebpfMonPeer *peer,
                                const struct ebpfMonPeer *outer, const struct ebpfMonFirst *first, const char *user,
                                const char *host, ebpfMonPutClient *client)
{
    ebpfMonPutClientsFind(clients, outer, first, user, host, client);
    memcpy(client->published, client->server, sizeof(client->published));
    ebpfMonPeerTextEnd(peer->saddr, peer->saddr6, peer->sport, client->server, sizeof(client->server));
}

static int isCertificate(const char *user)
{
    return strncmp(user, EBPFMON_BY_CERTIFICATE, sizeof(EBPFMON_BY_CERTIFICATE) - 1) == 0;
}

/* Access security tells the name in a certificate, perhaps cut; the server's credentials have all of it, and who
 * vouches for it. */
static void findCertificate(ebpfMonPutClients *clients, clientConnection *c)
{
    const char *cut = c->user + sizeof(EBPFMON_BY_CERTIFICATE) - 1;
    struct ebpfMonCertificate certificate = { .account = "" };

    if (clients->findCertificate(&c->peer, &certificate) &&
        strncmp(certificate.account, cut, strlen(cut)) != 0)
        memset(&certificate, 0, sizeof(certificate)); /* of an earlier connection */
    if (memcmp(&certificate, &c->certificate, sizeof(certificate)) == 0)
        return;
    c->certificate = certificate;
    c->isComplete = 0;
}

/* The user of a connection, as we show it: cut if there is no room. */
static void formatUser(const clientConnection *c, int isCA, char *user, size_t size)
{
    char full[sizeof(EBPFMON_BY_CERTIFICATE) + sizeof(c->certificate.account)];

    snprintf(full, sizeof(full), "%s", c->user);
    if (isCA)
        ebpfMonTextMarkClaim(full, sizeof(full));
    else if (c->certificate.account[0])
        snprintf(full, sizeof(full), EBPFMON_BY_CERTIFICATE "%s", c->certificate.account);
    else if (isCertificate(full) && strlen(full) == sizeof(c->user) - 1) /* it may be cut */
        strcat(full, "...");
    ebpfMonTextCopy(user, size, full);
}

int ebpfMonPutClientsFindByThread(ebpfMonPutClients *clients, const struct ebpfMonHead *head,
                                  const struct ebpfMonWho *who, ebpfMonPutClient *client)
{
    clientConnection *c;

    if (!who->isCA && (!who->peer.addr || !isServerPort(&clients->ports, head->iocId, (pid_t)head->tgid,
                                                                 who->peer.sport, head->ktime)))
        return 0;
    c = &clients->connection[(who->peer.addr ^ who->peer.port * 40503u ^ who->peer.sport) % CONNECTIONS];
    if (memcmp(&c->peer, &who->peer, sizeof(who->peer)) != 0 || !isSameOwner(&c->owner, &who->owner) ||
        strncmp(c->user, who->user, sizeof(who->user)) != 0 || strncmp(c->host, who->host, sizeof(who->host)) != 0) {
        c->peer = who->peer;
        c->owner = who->owner;
        snprintf(c->user, sizeof(c->user), "%.*s", EBPFMON_USER_MAX - 1, who->user);
        snprintf(c->host, sizeof(c->host), "%.*s", EBPFMON_HOST_MAX - 1, who->host);
        memset(&c->certificate, 0, sizeof(c->certificate));
        c->isComplete = 0;
    }
    if (!who->isCA && isCertificate(c->user))
        findCertificate(clients, c);
    if (!c->isComplete || (c->owner.pid && head->ktime - c->at > SAME_NS)) {
        char user[sizeof(c->client.user)];

        c->at = head->ktime;
        formatUser(c, who->isCA, user, sizeof(user));
        c->isComplete = makeClient(clients, &c->peer, &c->owner, user, c->host, &c->client);
        ebpfMonTextCopy(c->client.authority, sizeof(c->client.authority), c->certificate.authority);
    }
    *client = c->client;
    client->isUnsure = who->isShared;
    return 1;
}

void ebpfMonPutClientNameProcess(const ebpfMonPutClient *client, char *buf, size_t size)
{
    const char *blank = strrchr(client->command, ' ');

    snprintf(buf, size, "%.40s[%u]", blank ? blank + 1 : client->command, client->peerPid);
}

void ebpfMonPutClientSet(const ebpfMonPutClient *client, ebpfMonPut *put)
{
    memcpy(put->peer, client->peer, sizeof(put->peer));
    memcpy(put->server, client->server, sizeof(put->server));
    memcpy(put->published, client->published, sizeof(put->published));
    memcpy(put->user, client->user, sizeof(put->user));
    memcpy(put->authority, client->authority, sizeof(put->authority));
    memcpy(put->host, client->host, sizeof(put->host));
    memcpy(put->realUser, client->realUser, sizeof(put->realUser));
    memcpy(put->command, client->command, sizeof(put->command));
    memcpy(put->container, client->container, sizeof(put->container));
    put->peerPid = client->peerPid;
    put->peerUid = client->peerUid;
    put->isUnsure = client->isUnsure;
}
