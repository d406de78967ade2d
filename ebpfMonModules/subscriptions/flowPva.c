/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <caeventmask.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "host/procStat.h"
#include "subscriptions/flowPva.h"

#define RATE_NS   (4 * EBPFMON_SECOND_NS)
#define WHO_TRIES 3 /* so often the process of a client is looked for */
#define CLOSED_NS (2 * EBPFMON_SECOND_NS) /* a window that stays closed for so long */

struct flowServer {
    pid_t    pid;
    uint64_t stoppedAt;
    int      isSeen;
};

/* --- clients and monitors ---------------------------------------------------------------------------------------- */

static int isWanted(const ebpfMonPacketClient *c)
{
    return c->iocId || (c->pid && c->pid != getpid());
}

static void copyMonitor(ebpfMonFlowMonitor *m, const ebpfMonPacketMonitor *from)
{
    m->isPipelined = from->isPipelined;
    m->isStopped = from->isStopped;
    m->isAtLeast = from->isAtLeast;
    m->isUnsure = from->isUnsure;
    m->closedAt = from->closedAt;
    m->stoppedAt = from->stoppedAt;
    m->updates = from->updates;
    m->bytes = from->bytes;
    m->overruns = from->overruns;
    m->unread = from->unread;
    m->updatedAt = from->updatedAt;
}

static void copyPvaClient(ebpfMonFlowPvaClient *c, const ebpfMonPacketClient *from)
{
    c->circuit = from->circuit;
    c->iocId = from->iocId;
    c->server = from->pid;
    c->channels = from->channels;
    c->unkept = from->unkept;
    memcpy(c->serverName, from->server, sizeof(c->serverName));
    memcpy(c->user, from->user, sizeof(c->user));
    memcpy(c->host, from->host, sizeof(c->host));
    c->is.key = from->peer;
    c->is.isPva = from->protocol == ebpfMonWirePva;
    c->is.isOfPackets = 1;
}

typedef struct {
    ebpfMonFlowPvaClient *client;
    struct ebpfMonFirst *first;
    size_t clients, clientRoom, firstRoom;
    ebpfMonFlowMonitor *monitor;
    size_t monitors, monitorRoom;
} copies;

/* The caller holds the lock of the table. 0, or -1 without memory. */
static int copyAll(copies *to, const ebpfMonPacketClients *from)
{
    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(from, NULL); c;
         c = ebpfMonPacketClientsNext(from, c)) {
        ebpfMonFlowPvaClient *copy;

        if (!isWanted(c))
            continue;
        if (ebpfMonArrayGrow(&to->client, &to->clientRoom, to->clients + 1, 64, sizeof(*to->client)) ||
            ebpfMonArrayGrow(&to->first, &to->firstRoom, to->clients + 1, 64, sizeof(*to->first)) ||
            ebpfMonArrayGrow(&to->monitor, &to->monitorRoom, to->monitors + c->monitors + 1, 64, sizeof(*to->monitor)))
            return -1;
        to->first[to->clients] = c->first;
        copy = &to->client[to->clients++];
        *copy = (ebpfMonFlowPvaClient){ .monitor = to->monitors, .monitors = c->monitors };
        copyPvaClient(copy, c);
        for (const ebpfMonPacketMonitor *m = c->monitor; m; m = m->next) {
            ebpfMonFlowMonitor *into = &to->monitor[to->monitors++];

            *into = (ebpfMonFlowMonitor){ .serial = m->serial, .client = (uint32_t)to->clients - 1,
                                          .queueSize = m->queueSize, .rate = NAN, .mergedBefore = UINT64_MAX };
            memcpy(into->name, m->name, sizeof(into->name));
            copyMonitor(into, m);
        }
    }
    return 0;
}

/* Most of them stand in the same order as before, so the search begins behind the last one that was found. */
static const ebpfMonFlowPvaClient *findOldClient(const ebpfMonFlowPva *pva, uint64_t circuit, size_t *hint)
{
    for (size_t i = 0; i < pva->clients; i++) {
        size_t k = (*hint + i) % pva->clients;

        if (pva->client[k].circuit == circuit) {
            *hint = k + 1;
            return &pva->client[k];
        }
    }
    return NULL;
}

/* What was known of them before goes on; of new ones, their processes are found. */
static void carryPvaClients(ebpfMonFlowPva *pva, copies *to)
{
    size_t hint = 0;

    for (size_t i = 0; i < to->clients; i++) {
        ebpfMonFlowPvaClient *c = &to->client[i];
        const ebpfMonFlowPvaClient *old = findOldClient(pva, c->circuit, &hint);
        ebpfMonPutClient who = { .peer = "" };
        struct ebpfMonPeer key = c->is.key;

        if (old) {
            c->is = old->is;
            c->is.key = key;
            c->tries = old->tries;
        }
        if (old && strcmp(old->user, c->user) == 0 && strcmp(old->host, c->host) == 0 &&
            (old->is.pid || old->tries >= WHO_TRIES))
            continue;
        c->tries++;
        ebpfMonPacketClientsFindWho(pva->from, &key, &to->first[i], c->user, c->host, &who);
        snprintf(c->is.name, sizeof(c->is.name), "%.50s@%.64s%s", who.user[0] ? who.user : "?", who.host,
                 c->is.isPva ? " pvAccess" : "");
        snprintf(c->is.peer, sizeof(c->is.peer), "%.*s", (int)sizeof(c->is.peer) - 1, who.peer);
        snprintf(c->is.command, sizeof(c->is.command), "%s", who.command);
        c->is.pid = (pid_t)who.peerPid;
    }
}

static int compareSerials(const void *left, const void *right)
{
    uint64_t l = (*(ebpfMonFlowMonitor *const *)left)->serial, r = (*(ebpfMonFlowMonitor *const *)right)->serial;

    return (l > r) - (l < r);
}

/* Packets are read once a second, so rates are those of several seconds. */
static void setMonitorRates(ebpfMonFlowMonitor *m, uint64_t now)
{
    double seconds = (double)(now - m->before.at) / 1e9;

    if (m->before.at && now - m->before.at < RATE_NS)
        return;
    if (m->before.at) {
        m->rate = (double)(m->updates - m->before.updates) / seconds;
        m->overrunRate = (double)(m->overruns - m->before.overruns) / seconds;
    }
    m->before.at = now;
    m->before.updates = m->updates;
    m->before.overruns = m->overruns;
}

static void carryMonitors(const ebpfMonFlowPva *pva, copies *to, uint64_t now)
{
    ebpfMonFlowMonitor **old = malloc((pva->monitors + 1) * sizeof(*old)), **at;

    for (size_t i = 0; old && i < pva->monitors; i++)
        old[i] = &pva->monitor[i];
    if (old)
        qsort(old, pva->monitors, sizeof(*old), compareSerials);
    for (size_t i = 0; old && i < to->monitors; i++) {
        const ebpfMonFlowMonitor *key = &to->monitor[i];

        at = bsearch(&key, old, pva->monitors, sizeof(*old), compareSerials);
        if (!at)
            continue;
        to->monitor[i].rate = (*at)->rate;
        to->monitor[i].overrunRate = (*at)->overrunRate;
        to->monitor[i].before = (*at)->before;
        to->monitor[i].mergedBefore = (*at)->mergedBefore;
        setMonitorRates(&to->monitor[i], now);
    }
    free(old);
}

static void readCount(ebpfMonFlowPva *pva, ebpfMonFlowMonitor *m, const ebpfMonPacketMonitor *from, uint64_t now)
{
    pva->hasMoved |= from->updates != m->updates;
    copyMonitor(m, from);
    setMonitorRates(m, now);
}

/* The same clients as before: only the counts. The caller holds the lock of the table. */
static void readCounts(ebpfMonFlowPva *pva, uint64_t now)
{
    size_t n = 0;

    for (const ebpfMonPacketClient *c = ebpfMonPacketClientsNext(pva->from, NULL); c;
         c = ebpfMonPacketClientsNext(pva->from, c))
        for (const ebpfMonPacketMonitor *m = isWanted(c) ? c->monitor : NULL; m && n < pva->monitors; m = m->next)
            readCount(pva, &pva->monitor[n++], m, now);
}

static void lookAtServers(ebpfMonFlowPva *pva, uint64_t now)
{
    unsigned kept = 0;

    for (size_t i = 0; i < pva->clients; i++) {
        pid_t pid = pva->client[i].server;
        unsigned k = 0;

        while (k < pva->servers && pva->server[k].pid != pid)
            k++;
        if (k == pva->servers) {
            if (ebpfMonArrayGrow(&pva->server, &pva->serverRoom, k + 1u, 16, sizeof(*pva->server)))
                continue;
            pva->server[pva->servers++] = (struct flowServer){ .pid = pid };
        }
        pva->server[k].isSeen = 1;
    }
    for (unsigned k = 0; k < pva->servers; k++) {
        struct flowServer *s = &pva->server[k];

        if (!s->isSeen)
            continue;
        s->isSeen = 0;
        if (!s->pid || !ebpfMonProcStandsStill(s->pid, s->pid))
            s->stoppedAt = 0;
        else if (!s->stoppedAt)
            s->stoppedAt = now;
        pva->server[kept++] = *s;
    }
    pva->servers = kept;
}

uint64_t ebpfMonFlowPvaGetStopped(const ebpfMonFlowPva *pva, const ebpfMonFlowPvaClient *client)
{
    for (unsigned k = 0; k < pva->servers; k++)
        if (pva->server[k].pid == client->server)
            return pva->server[k].stoppedAt;
    return 0;
}

int ebpfMonFlowPvaRead(ebpfMonFlowPva *pva, uint64_t now)
{
    copies to = { .clients = 0 };
    int isChanged, status = 0;

    pva->hasMoved = 0;
    ebpfMonPacketClientsLock(pva->from);
    if (pva->isFresh)
        isChanged = ebpfMonPacketClientsCountChanges(pva->from) != pva->changes;
    else
        isChanged = 1;
    if (!isChanged) {
        readCounts(pva, now);
    } else {
        status = copyAll(&to, pva->from);
        pva->changes = ebpfMonPacketClientsCountChanges(pva->from);
    }
    ebpfMonPacketClientsUnlock(pva->from);
    if (isChanged && !status) {
        carryPvaClients(pva, &to);
        carryMonitors(pva, &to, now);
        free(pva->client);
        free(pva->monitor);
        pva->client = to.client;
        pva->clients = to.clients;
        pva->monitor = to.monitor;
        pva->monitors = to.monitors;
    } else if (isChanged) {
        free(to.client);
        free(to.monitor);
    }
    free(to.first);
    pva->isFresh = !status;
    pva->hasMoved |= isChanged;
    pva->readAt = now;
    lookAtServers(pva, now);
    ebpfMonWorkerGiveSignHere();
    return isChanged;
}

/* --- their sources ----------------------------------------------------------------------------------------------- */

/* A subscription for values. */
typedef struct {
    const char *name;
    size_t   sub;
    int      isShared;      /* of QSRV 1 */
} sourceKey;

static int compareSources(const void *left, const void *right)
{
    return strcmp(((const sourceKey *)left)->name, ((const sourceKey *)right)->name);
}

static size_t listSources(const ebpfMonFlowIoc *ioc, sourceKey *key)
{
    const ebpfMonEventLists *lists = ioc->others.lists;
    size_t n = 0;

    for (size_t i = 0; i < lists->subs; i++) {
        const ebpfMonEventSubscription *s = &lists->sub[i];
        ebpfMonFlowOwner owner = ebpfMonFlowIocGetOwner(ioc, s);

        if ((owner == ebpfMonFlowQsrv1 || owner == ebpfMonFlowQsrv2) && (s->mask & (DBE_VALUE | DBE_LOG)) && !s->isGone)
            key[n++] = (sourceKey){ lists->other[s->channel].name, i, owner == ebpfMonFlowQsrv1 };
    }
    qsort(key, n, sizeof(*key), compareSources);
    return n;
}

static int compareNames(const void *left, const void *right)
{
    return strcmp((*(ebpfMonFlowMonitor *const *)left)->name, (*(ebpfMonFlowMonitor *const *)right)->name);
}

/* The monitors of one PV, and the subscriptions to it. QSRV 1 makes one for all clients, QSRV 2 one for each monitor.
 * So if there are as many as monitors, and that is one, it is this one's. */
static void linkPv(ebpfMonEventLists *lists, ebpfMonFlowMonitor **monitor, size_t monitors, const sourceKey *key,
                   size_t keys)
{
    for (size_t k = 0; k < keys; k++)
        lists->other[lists->sub[key[k].sub].channel].monitors = (uint32_t)monitors;
    for (size_t i = 0; i < monitors; i++) {
        ebpfMonFlowMonitor *m = monitor[i];

        m->source = key->sub;
        m->sharers = (unsigned)(key->isShared ? monitors : keys);
        m->sourceKind = key->isShared ? ebpfMonSourceShared :
                        keys == 1 && monitors == 1 ? ebpfMonSourceOwn : ebpfMonSourceOneOf;
        if (m->mergedBefore == UINT64_MAX)
            m->mergedBefore = key->isShared ? lists->sub[key->sub].merged : 0;
    }
}

static void linkIoc(ebpfMonFlowIoc *ioc, ebpfMonFlowMonitor **monitor, size_t monitors)
{
    sourceKey *key = malloc((ioc->others.lists->subs + 1) * sizeof(*key));
    size_t keys = key ? listSources(ioc, key) : 0, at = 0, n, k;

    for (size_t i = 0; i < ioc->others.lists->others; i++)
        ioc->others.lists->other[i].monitors = 0;
    if (monitors)
        qsort(monitor, monitors, sizeof(*monitor), compareNames);
    for (size_t i = 0; i < monitors; i += n) {
        const char *name = monitor[i]->name;

        for (n = 1; i + n < monitors && strcmp(monitor[i + n]->name, name) == 0; n++)
            ;
        while (at < keys && strcmp(key[at].name, name) < 0)
            at++;
        for (k = 0; at + k < keys && strcmp(key[at + k].name, name) == 0; k++)
            ;
        if (k && name[0])
            linkPv(ioc->others.lists, &monitor[i], n, &key[at], k);
    }
    free(key);
}

void ebpfMonFlowPvaLink(ebpfMonFlowPva *pva, ebpfMonFlowIoc *ioc, unsigned iocs, int changed)
{
    ebpfMonFlowMonitor **of;
    uint64_t serials = iocs;

    for (unsigned i = 0; i < iocs; i++)
        serials += ioc[i].serial + ioc[i].id;
    if (!changed && serials == pva->linked)
        return;
    of = malloc((pva->monitors + 1) * sizeof(*of));
    if (!of)
        return;
    pva->linked = serials;
    for (size_t i = 0; i < pva->monitors; i++) {
        pva->monitor[i].ioc = NULL;
        pva->monitor[i].sourceKind = ebpfMonSourceNone;
    }
    for (unsigned k = 0; k < iocs; k++) {
        size_t n = 0;

        for (size_t i = 0; i < pva->monitors; i++)
            if (pva->client[pva->monitor[i].client].iocId == ioc[k].id) {
                pva->monitor[i].ioc = &ioc[k];
                of[n++] = &pva->monitor[i];
            }
        if (ioc[k].others.lists)
            linkIoc(&ioc[k], of, n);
    }
    free(of);
}

/* --- what is in the way ------------------------------------------------------------------------------------------ */

ebpfMonFlowState ebpfMonFlowMonitorGetState(const ebpfMonFlowPva *pva, const ebpfMonFlowMonitor *m, uint64_t now,
                                            uint64_t *since)
{
    const ebpfMonFlowClient *c = &pva->client[m->client].is;

    *since = c->since;
    if (c->flow != ebpfMonFlowFine)
        return c->flow;
    if (m->isStopped) {
        *since = m->stoppedAt;
        return ebpfMonFlowPaused;
    }
    if (m->closedAt && now - m->closedAt >= CLOSED_NS) {
        *since = m->closedAt;
        return ebpfMonFlowClosed;
    }
    return ebpfMonFlowFine;
}

int ebpfMonFlowMonitorGetQueue(const ebpfMonFlowMonitor *m, ebpfMonEventSubscription *sub, double *rate)
{
    const ebpfMonFlowLists *others = m->ioc ? &m->ioc->others : NULL;

    if (!others || !others->lists || m->source >= others->lists->subs ||
        (m->sourceKind != ebpfMonSourceOwn && m->sourceKind != ebpfMonSourceShared) ||
        others->lists->sub[m->source].isGone)
        return -1;
    *sub = others->lists->sub[m->source];
    sub->merged -= sub->merged < m->mergedBefore ? sub->merged : m->mergedBefore;
    *rate = others->mergedRate[m->source];
    return 0;
}

void ebpfMonFlowMonitorText(const ebpfMonFlowPva *pva, const ebpfMonFlowMonitor *m, uint64_t now, char *text,
                            size_t size)
{
    ebpfMonFlowClient c = pva->client[m->client].is;

    c.flow = ebpfMonFlowMonitorGetState(pva, m, now, &c.since);
    ebpfMonFlowText(&c, text, size);
    if (m->isUnsure)
        snprintf(text + strlen(text), size - strlen(text), ", perhaps of another PV");
    else if (m->sourceKind == ebpfMonSourceShared && m->sharers > 1 && c.flow == ebpfMonFlowFine && c.hasTcp)
        snprintf(text + strlen(text), size - strlen(text), ", one of QSRV for %u clients", m->sharers);
}
