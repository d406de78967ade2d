/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "host/procNetns.h"
#include "queues/caLinks.h"
#include "queues/reasons.h"
#include "queues/unconnected.h"
#include "watch/target.h"

#define PERIOD      5.0   /* s, as long as something is not connected */
#define COST_MOST   0.005 /* cores */
#define COST_NS     (10 * EBPFMON_SECOND_NS) /* the cost is a mean over this time */
#define IOCS_MAX    256
#define NAMES_MAX   100   /* never found, that are looked at */
#define PORTS_MAX   (2 * (NAMES_MAX + EBPFMON_UNCONNECTED_ROWS))

/* A row before its reason is known. */
typedef struct {
    ebpfMonReasonQuestion q;
    const ebpfMonCaLinkIoc *ioc; /* NULL: another program searches it */
    const ebpfMonCaLink *link;
} askedName;

struct ebpfMonUnconnected {
    const ebpfMonModule *module;
    ebpfMonSharedWorker worker;
    ebpfMonModuleCore core;
    /* the thread's own: it reads the memory of IOCs, which may not answer, so it holds no lock */
    ebpfMonCaLinkIoc ioc[IOCS_MAX];
    unsigned iocs;
    ebpfMonSearchState never[NAMES_MAX];
    askedName asked[EBPFMON_UNCONNECTED_ROWS];
    unsigned count;
    ebpfMonReasonSockets sockets;
    uint64_t cpu, costSince; /* ns of CPU time since then */
    double   period;
    ebpfMonUnconnectedValues values;
    ebpfMonUnconnectedValues shown; /* under the lock of the published values */
};

ebpfMonUnconnected *ebpfMonUnconnectedNew(const ebpfMonModule *module)
{
    ebpfMonUnconnected *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->module = module;
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
            ebpfMonCaLinkIocClear(&u->ioc[i]);
        }
    u->iocs = kept;
}

/* --- what is not connected --------------------------------------------------------------------------------------- */

static void addLink(ebpfMonUnconnected *u, const ebpfMonCaLinkIoc *ioc, const ebpfMonCaLink *link)
{
    askedName *a = &u->asked[u->count];
    char name[EBPFMON_SEARCH_NAME_SIZE];

    u->values.unconnected++;
    if (u->count == EBPFMON_UNCONNECTED_ROWS || ebpfMonCaLinkReadName(ioc, link, name, sizeof(name)))
        return;
    memset(a, 0, sizeof(*a));
    ebpfMonSearchGetState(u->core.search, ebpfMonSearchCa, name, &a->q.search);
    snprintf(a->q.search.name, sizeof(a->q.search.name), "%s", name);
    a->q.client = ioc->pid;
    a->ioc = ioc;
    a->link = link;
    u->count++;
}

static int hasLinkFor(const ebpfMonUnconnected *u, const ebpfMonSearchState *name, pid_t client)
{
    for (unsigned i = 0; i < u->count && u->asked[i].ioc; i++)
        if (u->asked[i].q.client == client && strcmp(u->asked[i].q.search.name, name->name) == 0)
            return 1;
    return 0;
}

static void addNames(ebpfMonUnconnected *u, unsigned names)
{
    for (unsigned i = 0; i < names && u->count < EBPFMON_UNCONNECTED_ROWS; i++) {
        const ebpfMonSearchState *name = &u->never[i];
        pid_t client = ebpfMonReasonFindClient(&u->sockets, &name->way);
        askedName *a = &u->asked[u->count];

        if (!client || client == getpid() || hasLinkFor(u, name, client))
            continue;
        memset(a, 0, sizeof(*a));
        a->q.search = *name;
        a->q.client = client;
        u->count++;
    }
}

/* The UDP ports from which and to which they are searched. */
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
        ebpfMonReasonSocketsRead(&u->sockets, pid, pids, port, ports);
}

/* The record of a channel: its name without field and modifiers. */
static void findOwners(const ebpfMonUnconnected *u, ebpfMonReasonQuestion *q)
{
    uint32_t netns = ebpfMonProcNetns(q->client);
    char record[EBPFMON_SEARCH_NAME_SIZE];

    snprintf(record, sizeof(record), "%s", q->search.name);
    record[strcspn(record, ".{")] = 0;
    for (unsigned i = 0; i < u->iocs && q->owners < EBPFMON_REASON_OWNERS; i++) {
        const ebpfMonCaLinkIoc *ioc = &u->ioc[i];
        ebpfMonReasonOwner *o = &q->owner[q->owners];

        if (ebpfMonCatalogueFind(ioc->cat, record) < 0 || ebpfMonProcNetns(ioc->pid) != netns)
            continue;
        o->pid = ioc->pid;
        snprintf(o->name, sizeof(o->name), "%s", ioc->name);
        q->owners++;
    }
}

static void describeClient(const askedName *a, char *text, size_t size)
{
    char command[64];

    if (a->ioc)
        snprintf(text, size, "IOC %s, link %s.%s", a->ioc->name, ebpfMonCatalogueName(a->ioc->cat, a->link->record),
                 a->ioc->cat->field[a->link->field].name);
    else if (ebpfMonProcCommand(a->q.client, command, sizeof(command)) == 0)
        snprintf(text, size, "%s (%d)", command, (int)a->q.client);
}

static void fillRow(ebpfMonUnconnected *u, askedName *a, uint64_t now, ebpfMonUnconnectedRow *row)
{
    uint64_t real = ebpfMonClockReal();
    char who[sizeof(row->client) + 4];

    findOwners(u, &a->q);
    ebpfMonTextSet(row->pv, sizeof(row->pv), a->q.search.name);
    describeClient(a, row->client, sizeof(row->client));
    row->isFault = ebpfMonReasonDescribe(&u->sockets, &a->q, row->reason, sizeof(row->reason));
    if (a->link)
        row->seconds = floor((double)(now - a->link->since) / 1e9);
    if (a->q.search.first && real > a->q.search.first && (double)(real - a->q.search.first) / 1e9 > row->seconds)
        row->seconds = floor((double)(real - a->q.search.first) / 1e9);
    snprintf(who, sizeof(who), "%s, ", row->client);
    if (a->q.search.isNever)
        ebpfMonSearchSetAsker(u->core.search, a->q.search.protocol, row->pv, who);
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
    char text[sizeof(v->state)];

    if (v->faults)
        snprintf(text, sizeof(text), "%s of %s: %s", first->pv, first->client, first->reason);
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

        ebpfMonCaLinkIocUpdate(ioc, now);
        v->links += ioc->isRead ? (unsigned)ioc->links : 0;
        for (size_t k = 0; ioc->isRead && k < ioc->links; k++)
            if (!ioc->link[k].isConnected)
                addLink(u, ioc, &ioc->link[k]);
    }
    names = ebpfMonSearchListNever(u->core.search, u->never, NAMES_MAX);
    readSockets(u, names);
    addNames(u, names);
    for (v->rows = 0; v->rows < u->count; v->rows++) {
        fillRow(u, &u->asked[v->rows], now, &v->row[v->rows]);
        v->faults += v->row[v->rows].isFault != 0;
        ebpfMonWorkerGiveSignHere();
    }
    qsort(v->row, v->rows, sizeof(v->row[0]), compareRows);
    describeState(v);
}

static void publishValues(ebpfMonUnconnected *u)
{
    if (memcmp(&u->shown, &u->values, sizeof(u->values)) == 0) /* only this thread writes "shown" */
        return;
    ebpfMonModuleLock();
    memcpy(&u->shown, &u->values, sizeof(u->values));
    ebpfMonModuleUnlock();
    ebpfMonModuleShow(u->module);
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
        publishValues(u);
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

int ebpfMonUnconnectedStop(ebpfMonUnconnected *u, double seconds)
{
    return ebpfMonSharedWorkerStop(&u->worker, seconds);
}
