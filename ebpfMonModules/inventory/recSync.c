/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <epicsMutex.h>
#include <epicsThread.h>
#include <errlog.h>

#include "common/clock.h"
#include "common/worker.h"
#include "shared/iocInventory.h"
#include "inventory/recSync.h"
#include "inventory/recSyncLink.h"

#define IDLE_SECONDS   60.0 /* how long the thread sleeps without a deadline; a change wakes it */
#define OFF_SECONDS    3600.0 /* … while RecSync is off */
#define RETRY_SECONDS  5.0  /* wait so long after a connection has failed, or the port could not be opened */
#define EVENTS         64

typedef struct {
    int      isKnown;
    struct sockaddr_in address;
    uint32_t key;            /* our greeting repeats it */
} serverPlace;

struct ebpfMonRecSync {
    const ebpfMonModule *module;
    ebpfMonTargets *targets; /* set before the thread starts, as the next one */
    ebpfMonPacketServers *packetServers;
    ebpfMonSharedWorker worker; /* the thread */
    epicsMutexId   lock;     /* guards the next two */
    ebpfMonRecSyncConf wanted; /* the newest configuration */
    int            isNew;    /* … and the thread has not taken it */
    /* only the RecSync thread uses what follows */
    ebpfMonRecSyncConf conf; /* the configuration in use */
    int            poll, udp; /* files of epoll and of the UDP port; -1: not open */
    double         retryAt;  /* do not try the port or the server again before this time (s, monotonic) */
    serverPlace    server;
    ebpfMonRecSyncLink *links; /* one for each IOC */
    char           trouble[160]; /* why the port cannot be opened; empty: it is open */
    ebpfMonRecSyncValues shown; /* written by the thread, under the lock of the published values */
};

/* --- announcements ----------------------------------------------------------------------------------- */

static void watchFile(const ebpfMonRecSync *s, int file, uint32_t events, int isNew)
{
    struct epoll_event event = { .events = events, .data.fd = file };

    epoll_ctl(s->poll, isNew ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, file, &event);
}

/* Opens the UDP port of announcements. Other processes of this host use the same port: each IOC with a RecSync
 * client. */
static void openUdp(ebpfMonRecSync *s, double now)
{
    struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)s->conf.port) };
    int yes = 1;

    s->trouble[0] = 0;
    s->udp = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->udp >= 0) {
        /* as the RecSync client of Base does: each socket with SO_REUSEADDR gets every broadcast */
        setsockopt(s->udp, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        if (bind(s->udp, (struct sockaddr *)&any, sizeof(any)) == 0) {
            watchFile(s, s->udp, EPOLLIN, 1);
            return;
        }
    }
    snprintf(s->trouble, sizeof(s->trouble), "UDP port %u, where servers announce themselves, cannot be opened: %s",
             s->conf.port, strerror(errno));
    if (s->udp >= 0)
        close(s->udp);
    s->udp = -1;
    s->retryAt = now + RETRY_SECONDS;
}

static int hasConnection(const ebpfMonRecSync *s)
{
    for (const ebpfMonRecSyncLink *link = s->links; link; link = link->next)
        if (link->state != ebpfMonRecSyncIdle)
            return 1;
    return 0;
}

/* Reads announcements. Takes the first server that announces itself. Takes another one only when no IOC has a
 * connection. */
static void readAnnouncements(ebpfMonRecSync *s)
{
    uint8_t bytes[64];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t n;

    while (s->udp >= 0 && (n = recvfrom(s->udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size)) >= 0) {
        ebpfMonRecSyncServer server;

        size = sizeof(from);
        if (ebpfMonRecSyncParseAnnouncement(bytes, (size_t)n, &server) || (s->server.isKnown && hasConnection(s)))
            continue;
        s->server.isKnown = 1;
        s->server.key = server.key;
        s->server.address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = server.port };
        s->server.address.sin_addr.s_addr = server.address == INADDR_BROADCAST ? from.sin_addr.s_addr : server.address;
    }
}

/* --- IOCs -------------------------------------------------------------------------------------------- */

static void removeLink(ebpfMonRecSyncLink **at)
{
    ebpfMonRecSyncLink *link = *at;

    *at = link->next;
    ebpfMonRecSyncLinkFree(link);
}

/* Keeps the link of this IOC, or makes one. Takes over ioc->cat. */
static void updateLink(ebpfMonRecSync *s, ebpfMonInventoryIoc *ioc, double now)
{
    ebpfMonRecSyncLink *link = s->links;

    while (link && link->ioc.iocId != ioc->iocId)
        link = link->next;
    if (link && link->ioc.cat == ioc->cat) {
        link->isSeen = 1;
        ebpfMonCatalogueRelease(ioc->cat);
        return;
    }
    link = ebpfMonRecSyncLinkNew(ioc, now); /* if the IOC has a link with an old catalogue, its isSeen stays 0 */
    if (!link) {
        ebpfMonCatalogueRelease(ioc->cat);
        return;
    }
    link->isSeen = 1;
    link->next = s->links;
    s->links = link;
}

static void updateLinks(ebpfMonRecSync *s, double now)
{
    ebpfMonInventoryIoc *list;
    unsigned count = 0;

    for (ebpfMonRecSyncLink *link = s->links; link; link = link->next)
        link->isSeen = 0;
    list = s->conf.isOn ? ebpfMonIocListTake(
                              s->targets, s->conf.others != ebpfMonRecSyncNoOthers ? s->packetServers : NULL, &count) :
                          NULL;
    for (unsigned i = 0; i < count; i++)
        updateLink(s, &list[i], now);
    free(list);
    for (ebpfMonRecSyncLink **at = &s->links; *at; )
        if ((*at)->isSeen)
            at = &(*at)->next;
        else
            removeLink(at);
}

/* --- connections ------------------------------------------------------------------------------------- */

static int isUnderWay(const ebpfMonRecSync *s)
{
    for (const ebpfMonRecSyncLink *link = s->links; link; link = link->next)
        if (link->state != ebpfMonRecSyncIdle && link->state != ebpfMonRecSyncDone)
            return 1;
    return 0;
}

static void connectNext(ebpfMonRecSync *s, double now)
{
    for (ebpfMonRecSyncLink *link = s->links; link && s->server.isKnown && now >= s->retryAt; link = link->next) {
        if (link->state != ebpfMonRecSyncIdle || link->isOwn || now < link->deadline)
            continue;
        if (isUnderWay(s))
            return;
        if (ebpfMonRecSyncLinkLookForClient(link))
            continue;
        if (ebpfMonRecSyncLinkConnect(link, &s->server.address, s->server.key, now)) {
            s->server.isKnown = 0; /* wait for the next announcement: the server may be elsewhere now */
            return;
        }
        watchFile(s, link->file, ebpfMonRecSyncLinkGetEvents(link), 1);
    }
}

static void moveToEnd(ebpfMonRecSyncLink **at)
{
    ebpfMonRecSyncLink *link = *at;

    *at = link->next;
    link->next = NULL;
    while (*at)
        at = &(*at)->next;
    *at = link;
}

/* A link that failed goes behind all others, so they have their turn before it is tried again. */
static void handleLinkFailure(ebpfMonRecSync *s, ebpfMonRecSyncLink **at, double now)
{
    ebpfMonRecSyncLink *link = *at;

    errlogSevPrintf(errlogMinor, "ebpfMon: the RecSync server does not have IOC %s now (tried again): %s\n",
                    link->ioc.name, link->why);
    if (!link->isUnreadable) {
        s->retryAt = now + RETRY_SECONDS;
        s->server.isKnown = 0;
    }
    moveToEnd(at);
}

static void workLinks(ebpfMonRecSync *s, ebpfMonWorker *worker, double now)
{
    for (ebpfMonRecSyncLink **at = &s->links, *link; (link = *at) != NULL; ) {
        int status;

        if (link->state == ebpfMonRecSyncIdle) {
            at = &link->next;
            continue;
        }
        ebpfMonWorkerGiveSign(worker);
        status = ebpfMonRecSyncLinkWork(link, worker, s->conf.variables, now);
        if (status) {
            handleLinkFailure(s, at, now);
            continue; /* *at is the next one now */
        }
        if (link->state != ebpfMonRecSyncIdle)
            watchFile(s, link->file, ebpfMonRecSyncLinkGetEvents(link), 0);
        at = &link->next;
    }
}

/* --- what is published ------------------------------------------------------------------------------- */

/* The end of the message: what is not counted as an IOC whose records the server has. */
static void addOthers(char *text, size_t size, unsigned own, unsigned other)
{
    int n = 0;

    text[0] = 0;
    if (own)
        n = snprintf(text, size, "; %u more with a RecSync client of %s own", own, own == 1 ? "its" : "their");
    if (other)
        snprintf(text + n, size - (size_t)n, "; and %u server%s without EPICS Base", other, other == 1 ? "" : "s");
}

static void makeValues(const ebpfMonRecSync *s, ebpfMonRecSyncValues *v)
{
    unsigned all = 0, own = 0, other = 0;
    const char *why = s->trouble;
    char where[32] = "", others[120];

    memset(v, 0, sizeof(*v));
    for (const ebpfMonRecSyncLink *link = s->links; link; link = link->next) {
        int isOther = link->ioc.packetServers != NULL, isDone = link->state == ebpfMonRecSyncDone;

        own += link->isOwn != 0;
        all += !link->isOwn && !isOther;
        other += !link->isOwn && isOther && isDone;
        v->iocs += isDone && !isOther;
        v->records += isDone && !isOther ? link->records : 0;
        if (!isDone && link->why[0] && !why[0])
            why = link->why;
    }
    addOthers(others, sizeof(others), own, other);
    v->state = !s->conf.isOn ? ebpfMonLogNone : why[0] ? ebpfMonLogTrouble : ebpfMonLogOk;
    inet_ntop(AF_INET, &s->server.address.sin_addr, where, sizeof(where));
    if (!s->conf.isOn)
        snprintf(v->message, sizeof(v->message), "%s", EBPFMON_NO_RECSYNC);
    else if (why[0])
        snprintf(v->message, sizeof(v->message), "%.160s; the server has %u of %u IOCs%s", why, v->iocs, all,
                 others);
    else if (!s->server.isKnown)
        snprintf(v->message, sizeof(v->message), "waiting for a server to announce itself at UDP port %u",
                 s->conf.port);
    else
        snprintf(v->message, sizeof(v->message), "the server at %s:%u has %u of %u IOCs%s", where,
                 ntohs(s->server.address.sin_port), v->iocs, all, others);
}

static void publishRecSync(ebpfMonRecSync *s)
{
    ebpfMonRecSyncValues values;

    makeValues(s, &values);
    ebpfMonModuleShowValues(s->module, &s->shown, &values, sizeof(values));
}

/* --- the thread -------------------------------------------------------------------------------------- */

static void closeAll(ebpfMonRecSync *s)
{
    while (s->links)
        removeLink(&s->links);
    if (s->udp >= 0)
        close(s->udp);
    s->udp = -1;
    s->server.isKnown = 0;
}

static void applyRecSyncConf(ebpfMonRecSync *s)
{
    int isNew;

    epicsMutexMustLock(s->lock);
    isNew = s->isNew;
    if (isNew)
        s->conf = s->wanted;
    s->isNew = 0;
    epicsMutexUnlock(s->lock);
    if (!isNew)
        return;
    closeAll(s);
    ebpfMonPacketServersWantPvs(s->packetServers, s->conf.isOn && s->conf.others == ebpfMonRecSyncPvs);
    s->retryAt = 0;
    s->trouble[0] = 0;
}

/* The earlier one of "due" and of the time at which this link wants to be called. */
static double findLinkDue(const ebpfMonRecSync *s, const ebpfMonRecSyncLink *link, double due)
{
    double at = link->deadline;

    if (link->state == ebpfMonRecSyncIdle && (link->isOwn || !s->server.isKnown || isUnderWay(s)))
        return due; /* it waits for a server or for another link, or needs none */
    if (link->state == ebpfMonRecSyncIdle && at < s->retryAt)
        at = s->retryAt;
    if (link->state == ebpfMonRecSyncDone && link->lookAt && link->lookAt < at)
        at = link->lookAt;
    return at < due ? at : due;
}

static double findDue(const ebpfMonRecSync *s, double now)
{
    double due = now + (s->conf.isOn ? IDLE_SECONDS : OFF_SECONDS);

    if (now < s->retryAt && s->retryAt < due)
        due = s->retryAt;
    for (const ebpfMonRecSyncLink *link = s->links; link; link = link->next)
        due = findLinkDue(s, link, due);
    return due > now ? due - now : 0;
}

static void runRecSync(ebpfMonWorker *worker, void *arg)
{
    ebpfMonRecSync *s = arg;

    while (!ebpfMonWorkerIsStopping(worker)) {
        double now;

        applyRecSyncConf(s);
        now = ebpfMonClockSeconds();
        if (s->conf.isOn && s->udp < 0 && now >= s->retryAt)
            openUdp(s, now);
        readAnnouncements(s);
        updateLinks(s, now);
        workLinks(s, worker, now);
        connectNext(s, now);
        publishRecSync(s);
        ebpfMonWorkerWaitFile(worker, s->poll, (uint64_t)(findDue(s, ebpfMonClockSeconds()) * 1e9) + 1000000);
    }
    s->conf.isOn = 0;
    ebpfMonPacketServersWantPvs(s->packetServers, 0);
    closeAll(s);
    publishRecSync(s);
}

ebpfMonRecSync *ebpfMonRecSyncNew(const ebpfMonModule *module)
{
    ebpfMonRecSync *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->poll = epoll_create1(EPOLL_CLOEXEC);
    if (s->poll < 0) {
        free(s);
        return NULL;
    }
    s->module = module;
    strcpy(s->shown.message, EBPFMON_NO_RECSYNC);
    s->udp = -1;
    s->lock = epicsMutexMustCreate();
    ebpfMonSharedWorkerInit(&s->worker);
    return s;
}

const ebpfMonRecSyncValues *ebpfMonRecSyncGetValues(const ebpfMonRecSync *s)
{
    return &s->shown;
}

int ebpfMonRecSyncBegin(ebpfMonRecSync *s, ebpfMonTargets *targets, ebpfMonPacketServers *packetServers)
{
    s->targets = targets;
    s->packetServers = packetServers;
    return ebpfMonSharedWorkerSet(&s->worker,
                                  ebpfMonWorkerStart("ebpfMonRecSync", epicsThreadPriorityLow, runRecSync, s));
}

void ebpfMonRecSyncConfigure(ebpfMonRecSync *s, const ebpfMonRecSyncConf *conf)
{
    epicsMutexMustLock(s->lock);
    s->wanted = *conf;
    s->isNew = 1;
    epicsMutexUnlock(s->lock);
    ebpfMonSharedWorkerWake(&s->worker);
}

void ebpfMonRecSyncWake(ebpfMonRecSync *s)
{
    ebpfMonSharedWorkerWake(&s->worker);
}

int ebpfMonRecSyncStop(ebpfMonRecSync *s, double seconds)
{
    return ebpfMonSharedWorkerStop(&s->worker, seconds);
}
