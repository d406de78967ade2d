/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <caeventmask.h>
#include <ellLib.h>
#include <epicsEvent.h>
#include <epicsMutex.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "common/text.h"
#include "host/foreign.h"
#include "subscriptions/goneIocs.h"
#include "subscriptions/feedback.h"
#include "subscriptions/flowIoc.h"
#include "subscriptions/flowSums.h"
#include "subscriptions/subscriptions.h"

#define PERIOD      1.0  /* s */
#define SOCKETS_NS  (4 * EBPFMON_SECOND_NS) /* the sockets are looked at so often if nothing waits */
#define QUIET_LOOKS 3    /* in which nothing moved: then it is silent */
#define COST_NS     (10 * EBPFMON_SECOND_NS) /* the cost is a mean over this time */
#define TOLD_NS     (5 * EBPFMON_SECOND_NS)  /* a client that is stalled for so long is an event */
#define TOLD_MAX    5    /* such lines of one look */
#define GATEWAYS_IN_A_ROW 4
#define IOCS_MAX    EBPFMON_SUBSCRIPTION_IOCS
#define OTHERS      "others"
#define LOOK_SECONDS 1.0 /* each of LOOK_TRIES waits so long, with a sign of progress in between */
#define LOOK_TRIES  5
#define QUESTION    200
#define ANSWER      4000 /* bytes */
#define ANSWER_SECONDS 15.0 /* a command waits so long at most */

/* A place in the table. */
typedef struct {
    double   badness;
    const ebpfMonFlowIoc *ioc; /* of the next; NULL: there is none */
    size_t   sub;           /* of a CA client, or of others */
    const ebpfMonFlowMonitor *monitor; /* NULL: none of pvAccess */
    int      isOther;
} rowPlace;

/* A question for which a command waits. */
typedef struct {
    ELLNODE node;
    char question[QUESTION], answer[ANSWER];
    int  isAnswered, isAbandoned; /* abandoned: the thread frees it */
    epicsEventId done;
} asking;

struct ebpfMonSubscriptions {
    const ebpfMonModule *module;
    ebpfMonSubscriptionsAnswer answer;
    ebpfMonSharedWorker worker;
    ebpfMonFeedback *feedback;
    const ebpfMonModuleCore *core; /* NULL: it does not run; the next is it */
    ebpfMonModuleCore ownCore;
    ebpfMonClients *clients;
    epicsMutexId lock;         /* guards the next two, and isAnswered, isAbandoned of each asking */
    char question[QUESTION];   /* for WHY_TEXT; "": none */
    ELLLIST askings;
    /* the thread's own: it reads the memory of IOCs, which may not answer, so it holds no lock */
    ebpfMonFlowIoc ioc[IOCS_MAX];
    unsigned iocs;
    ebpfMonFlowPva pva;
    ebpfMonGoneIocs known;      /* for ebpfMonWhy */
    ebpfMonFlowKeys keys;
    uint64_t socketsAt;        /* monotonic ns, as all times here */
    int      needsSockets, hasMoved;
    uint64_t lookWantedAt;     /* a look at the clients was requested then */
    unsigned told;             /* events of this look */
    uint64_t cpu, costSince;   /* ns of CPU time since then */
    unsigned quiet;
    double   period;
    rowPlace place[EBPFMON_SUBSCRIPTION_ROWS];
    unsigned places;
    ebpfMonFlowSums sums;
    ebpfMonSubscriptionValues values;
    ebpfMonSubscriptionValues shown; /* under the lock of the published values */
};

ebpfMonSubscriptions *ebpfMonSubscriptionsNew(const ebpfMonModule *module, ebpfMonSubscriptionsAnswer answer)
{
    ebpfMonSubscriptions *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->module = module;
    d->answer = answer;
    d->feedback = ebpfMonFeedbackNew();
    if (!d->feedback) {
        free(d);
        return NULL;
    }
    d->lock = epicsMutexMustCreate();
    d->period = PERIOD;
    ebpfMonSharedWorkerInit(&d->worker);
    return d;
}

const ebpfMonSubscriptionValues *ebpfMonSubscriptionsGetValues(const ebpfMonSubscriptions *d)
{
    return &d->shown;
}

const ebpfMonModuleCore *ebpfMonSubscriptionsGetCore(const ebpfMonSubscriptions *d)
{
    return d->core;
}

/* --- which IOCs ------------------------------------------------------------------------------------------------- */

static ebpfMonFlowIoc *findIoc(ebpfMonSubscriptions *d, uint32_t id)
{
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].id == id)
            return &d->ioc[i];
    return NULL;
}

static void forgetIocs(ebpfMonSubscriptions *d)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].isSeen) {
            d->ioc[kept] = d->ioc[i];
            d->ioc[kept++].isSeen = 0;
        } else {
            ebpfMonFlowIocClear(&d->ioc[i]);
            d->keys.isOld = 1;
        }
    d->iocs = kept;
}

/* Takes over the newest looks at the clients of all IOCs. Their memory is read without the lock of the table. */
static void takeLooks(ebpfMonSubscriptions *d)
{
    ebpfMonClientTable *table = d->clients->table;
    const ebpfMonClientIoc *from;
    int isThere = 1;

    for (unsigned n = 0; isThere; n++) {
        ebpfMonFlowLook look = { .id = 0 };
        ebpfMonFlowIoc *ioc = NULL;

        ebpfMonClientTableLock(table);
        from = ebpfMonClientTableGet(table, n);
        isThere = from != NULL;
        if (from && from->clientQ && from->clients) {
            ioc = findIoc(d, from->id);
            if (!ioc && d->iocs < IOCS_MAX) {
                ioc = &d->ioc[d->iocs++];
                *ioc = (ebpfMonFlowIoc){ .id = from->id };
            }
            if (ioc && ioc->readAt != from->readAt)
                ebpfMonFlowLookCopy(&look, from);
        }
        ebpfMonClientTableUnlock(table);
        if (ioc)
            ioc->isSeen = 1;
        if (look.id) {
            ebpfMonFlowIocTellUses(ioc, &d->clients->sink); /* of the look before: its monitors are found */
            d->keys.isOld |= ebpfMonFlowIocTake(ioc, &look);
        }
    }
    forgetIocs(d);
}

/* Requests a look at the clients, because some came or went; not so often that it would cost more than we may. */
static void wantLook(ebpfMonSubscriptions *d, uint64_t now)
{
    ebpfMonClientTable *table = d->clients->table;
    uint64_t cost;

    ebpfMonClientTableLock(table);
    cost = ebpfMonClientTableGetCost(table);
    ebpfMonClientTableUnlock(table);
    if (now - d->lookWantedAt < EBPFMON_SECOND_NS + (uint64_t)((double)cost / EBPFMON_SUBSCRIPTIONS_COST))
        return;
    d->lookWantedAt = now;
    ebpfMonClientsRequestLook(d->clients);
}

/* --- a look ----------------------------------------------------------------------------------------------------- */

static void makeKeys(ebpfMonSubscriptions *d)
{
    ebpfMonFlowKeysBegin(&d->keys);
    for (unsigned i = 0; i < d->iocs; i++)
        for (unsigned k = 0; k < d->ioc[i].clients; k++)
            ebpfMonFlowKeysAdd(&d->keys, d->ioc[i].pid, &d->ioc[i].client[k]);
    for (size_t i = 0; i < d->pva.clients; i++)
        ebpfMonFlowKeysAdd(&d->keys, d->pva.client[i].server, &d->pva.client[i].is);
    ebpfMonFlowKeysEnd(&d->keys);
}

static void readSockets(ebpfMonSubscriptions *d, uint64_t now)
{
    if (!d->needsSockets && now - d->socketsAt < SOCKETS_NS)
        return;
    d->socketsAt = now;
    if (d->keys.isOld)
        makeKeys(d);
    ebpfMonFlowKeysReadSockets(&d->keys, now);
}

/* What the operator sees of a client that is stalled, or is no more. */
static void tellClient(ebpfMonSubscriptions *d, const char *kind, const char *server, ebpfMonFlowClient *c,
                       uint64_t now)
{
    int isStalled = ebpfMonFlowIsStalled(c);
    char text[EBPFMON_MODULE_EVENT], flow[64], process[100] = "";

    if (isStalled == (c->toldSince != 0) || (isStalled && now - c->since < TOLD_NS) || d->told >= TOLD_MAX)
        return;
    if (c->pid)
        snprintf(process, sizeof(process), ", %s, pid %d", c->command, (int)c->pid);
    ebpfMonFlowText(c, flow, sizeof(flow));
    if (isStalled)
        snprintf(text, sizeof(text), "%s %s: %s: %s (%s%s)", kind, server, flow, c->name, c->peer, process);
    else
        snprintf(text, sizeof(text), "%s %s: client reads again, after %.0f s: %s (%s%s)", kind, server,
                 (double)(now - c->toldSince) / 1e9, c->name, c->peer, process);
    ebpfMonModuleAddEvent(text);
    d->told++;
    c->toldSince = isStalled ? c->since : 0;
}

static void judgeClients(ebpfMonSubscriptions *d, ebpfMonFlowIoc *ioc, uint64_t now)
{
    for (unsigned i = 0; i < ioc->clients; i++) {
        ebpfMonFlowClient *c = &ioc->client[i];

        if (ioc->isRead)
            ebpfMonFlowJudge(ioc->stoppedAt, c, now);
        d->needsSockets |= ebpfMonFlowNeedsSockets(c);
        if (ioc->isRead)
            tellClient(d, "IOC", ioc->name, c, now);
    }
}

static void judgePvaClients(ebpfMonSubscriptions *d, uint64_t now)
{
    for (size_t i = 0; i < d->pva.clients; i++) {
        ebpfMonFlowPvaClient *c = &d->pva.client[i];

        ebpfMonFlowJudge(ebpfMonFlowPvaGetStopped(&d->pva, c), &c->is, now);
        d->needsSockets |= ebpfMonFlowNeedsSockets(&c->is);
        tellClient(d, c->iocId ? "IOC" : "server", c->serverName, &c->is, now);
    }
}

/* Monitors of pvAccess, and the subscriptions of QSRV that they come from. */
static void readPva(ebpfMonSubscriptions *d, uint64_t now)
{
    int isChanged;

    d->pva.from = d->clients->packetClients;
    isChanged = ebpfMonFlowPvaRead(&d->pva, now);
    d->keys.isOld |= isChanged;
    d->hasMoved |= d->pva.hasMoved;
    for (unsigned i = 0; isChanged && i < d->iocs; i++)
        ebpfMonFlowIocTakeOthers(&d->ioc[i]);
    ebpfMonFlowPvaLink(&d->pva, d->ioc, d->iocs, d->keys.isOld);
    for (size_t i = 0; i < d->pva.clients; i++)
        d->needsSockets |= ebpfMonFlowNeedsSockets(&d->pva.client[i].is) || d->pva.hasMoved;
}

static void tellRights(void *arg, const char *what)
{
    const ebpfMonFlowIoc *ioc = arg;
    char text[EBPFMON_MODULE_EVENT];

    snprintf(text, sizeof(text), "IOC %s: %s", ioc->name, what);
    ebpfMonModuleAddEvent(text);
}

static void readFlows(ebpfMonSubscriptions *d)
{
    uint64_t now;
    int isChanged = 0;

    takeLooks(d);
    now = ebpfMonClockMonotonic();
    d->hasMoved = 0;
    d->told = 0;
    for (unsigned i = 0; i < d->iocs; i++) {
        isChanged |= ebpfMonFlowIocUpdate(&d->ioc[i], now);
        if (d->ioc[i].isRead && !d->ioc[i].stoppedAt)
            ebpfMonAccessStateLook(&d->ioc[i].access, d->ioc[i].pid, tellRights, &d->ioc[i]);
        d->hasMoved |= d->ioc[i].hasMoved;
        for (unsigned n = 0; n < d->ioc[i].clients; n++)
            d->needsSockets |= ebpfMonFlowNeedsSockets(&d->ioc[i].client[n]);
    }
    readPva(d, now);
    readSockets(d, now);
    d->needsSockets = 0;
    for (unsigned i = 0; i < d->iocs; i++)
        judgeClients(d, &d->ioc[i], now);
    judgePvaClients(d, now);
    if (isChanged)
        wantLook(d, now);
}

/* --- what is published ------------------------------------------------------------------------------------------ */

/* Puts a subscription into the table, if it is worse than the least bad one there. */
static void placeRow(ebpfMonSubscriptions *d, const rowPlace *row)
{
    rowPlace *least = &d->place[0];

    if (d->places < EBPFMON_SUBSCRIPTION_ROWS) {
        d->place[d->places++] = *row;
        return;
    }
    if (row->badness <= 0)
        return;
    for (unsigned i = 1; i < d->places; i++)
        if (d->place[i].badness < least->badness)
            least = &d->place[i];
    if (least->badness < row->badness)
        *least = *row;
}

static int comparePlaces(const void *left, const void *right)
{
    const rowPlace *l = left, *r = right;

    if (l->badness != r->badness)
        return l->badness < r->badness ? 1 : -1;
    if (l->monitor || r->monitor)
        return (l->monitor > r->monitor) - (l->monitor < r->monitor);
    return l->sub < r->sub ? -1 : l->sub > r->sub;
}

/* The sum to which this kind of clients of a server belongs. */
static unsigned findSum(ebpfMonSubscriptionValues *v, const char *ioc, const char *kind)
{
    for (unsigned i = 0; i < v->sums; i++)
        if (strcmp(v->sum[i].kind, kind) == 0 && strcmp(v->sum[i].ioc, ioc) == 0)
            return i;
    if (v->sums >= EBPFMON_SUBSCRIPTION_SUMS && strcmp(ioc, OTHERS) != 0)
        return findSum(v, OTHERS, kind);
    snprintf(v->sum[v->sums].ioc, sizeof(v->sum[0].ioc), "%s", ioc);
    v->sum[v->sums].kind = kind;
    return v->sums++;
}

static void sumClient(ebpfMonSubscriptions *d, const char *server, ebpfMonFlowClient *c, uint64_t now)
{
    ebpfMonSubscriptionValues *v = &d->values;
    double since = (double)(now - c->since) / 1e9;
    ebpfMonSubscriptionSum *sum;
    const char *end;
    char flow[64];
    int isIoc = 0;

    for (unsigned i = 0; c->pid && i < d->iocs; i++)
        isIoc |= d->ioc[i].pid == c->pid;
    c->sum = findSum(v, server, isIoc ? "IOC" : c->isPva ? "PVA" : "CA");
    sum = &v->sum[c->sum];
    sum->clients++;
    sum->stalled += ebpfMonFlowIsStalled(c) != 0;
    sum->unsent += (double)c->inBuffer + (c->hasTcp ? c->tcp.notSent : 0);
    v->stalled += ebpfMonFlowIsStalled(c) != 0;
    if (!ebpfMonFlowIsStalled(c) || (v->stalledCause[0] && since <= v->silence))
        return;
    v->silence = floor(since);
    ebpfMonFlowText(c, flow, sizeof(flow));
    end = strstr(flow, " since"); /* with its time it would be a new alarm each second */
    snprintf(v->stalledCause, sizeof(v->stalledCause), "%.*s: %.100s of %.60s", (int)(end ? end - flow : 0), flow,
             c->name, server);
}

/* A subscription to this record: adds it to the sums of the record, if it is watched, and of the IOC. */
static void addPart(ebpfMonSubscriptions *d, const ebpfMonFlowIoc *ioc, long record, const ebpfMonFlowSumPart *part)
{
    ebpfMonFlowSumPart known = *part;

    ebpfMonFlowSumsAdd(&d->sums, ioc, record, part);
    if (isnan(known.mergedRate))
        known.mergedRate = 0; /* of an IOC it is what is known */
    ebpfMonFlowSumAdd(&d->values.ofIoc[ioc - d->ioc], &known);
}

/* Subscriptions of QSRV; those whose monitors packets have shown have rows of their own. */
static void sumOthers(ebpfMonSubscriptions *d, const ebpfMonFlowIoc *ioc)
{
    const ebpfMonEventLists *lists = ioc->others.lists;
    ebpfMonSubscriptionSum *sum;

    for (size_t i = 0; lists && i < lists->subs; i++) {
        const ebpfMonEventSubscription *s = &lists->sub[i];
        const ebpfMonEventOther *other = &lists->other[s->channel];
        ebpfMonFlowOwner owner = ebpfMonFlowIocGetOwner(ioc, s);
        uint32_t monitors = other->monitors;
        double badness = 1e3 * ioc->others.mergedRate[i] + s->waiting;

        if (s->isGone || (owner != ebpfMonFlowQsrv1 && owner != ebpfMonFlowQsrv2) || !(s->mask & (DBE_VALUE | DBE_LOG)))
            continue;
        d->values.mergedRate += ioc->others.mergedRate[i];
        sum = &d->values.sum[findSum(&d->values, ioc->name, "PVA")];
        sum->mergedRate += ioc->others.mergedRate[i];
        sum->waiting += s->waiting;
        sum->subscriptions += !monitors;
        if (!monitors)
            addPart(d, ioc, other->record, &(ebpfMonFlowSumPart){
                .waiting = s->waiting, .mergedRate = s->isCopied ? ioc->others.mergedRate[i] : NAN });
        if (!monitors || (owner == ebpfMonFlowQsrv2 && monitors > 1 && (s->waiting || s->merged)))
            placeRow(d, &(rowPlace){ badness, ioc, i, NULL, 1 });
        d->values.subscriptions += !monitors;
    }
}

static void sumIoc(ebpfMonSubscriptions *d, ebpfMonFlowIoc *ioc, uint64_t now)
{
    ebpfMonSubscriptionValues *v = &d->values;

    v->iocs += ioc->isRead;
    if (!ioc->isRead)
        return;
    v->clients += ioc->clients;
    v->subscriptions += (unsigned)ioc->ca.lists->subs;
    for (unsigned i = 0; i < ioc->clients; i++)
        sumClient(d, ioc->name, &ioc->client[i], now);
    for (size_t i = 0; i < ioc->ca.lists->subs; i++) {
        const ebpfMonEventSubscription *s = &ioc->ca.lists->sub[i];
        const ebpfMonFlowClient *c = &ioc->client[s->client];
        double badness = 1e6 * c->flow + 1e3 * ioc->ca.mergedRate[i] + s->waiting;

        if (s->isGone)
            continue;
        v->mergedRate += ioc->ca.mergedRate[i];
        v->sum[c->sum].mergedRate += ioc->ca.mergedRate[i];
        v->sum[c->sum].waiting += s->waiting;
        v->sum[c->sum].subscriptions++;
        placeRow(d, &(rowPlace){ badness, ioc, i, NULL, 0 });
        addPart(d, ioc, ioc->channel[s->channel].record, &(ebpfMonFlowSumPart){
            ebpfMonFlowIsStalled(c), (double)(now - c->since) / 1e9, s->waiting,
            s->isCopied ? ioc->ca.mergedRate[i] : NAN });
    }
    sumOthers(d, ioc);
}

static long findRecordOf(const ebpfMonCatalogue *cat, const char *pv)
{
    char record[EBPFMON_CHANNEL_NAME];

    snprintf(record, sizeof(record), "%.*s", (int)strcspn(pv, ".{"), pv);
    return ebpfMonCatalogueFind(cat, record);
}

static void sumPva(ebpfMonSubscriptions *d, uint64_t now)
{
    ebpfMonSubscriptionValues *v = &d->values;

    v->clients += (unsigned)d->pva.clients;
    v->subscriptions += (unsigned)d->pva.monitors;
    for (size_t i = 0; i < d->pva.clients; i++)
        sumClient(d, d->pva.client[i].serverName, &d->pva.client[i].is, now);
    for (size_t i = 0; i < d->pva.monitors; i++) {
        const ebpfMonFlowMonitor *m = &d->pva.monitor[i];
        ebpfMonEventSubscription sub = { .waiting = 0 };
        const ebpfMonFlowClient *c = &d->pva.client[m->client].is;
        uint64_t since;
        double rate = 0;

        ebpfMonFlowMonitorGetQueue(m, &sub, &rate);
        if (m->ioc && m->ioc->isRead)
            addPart(d, m->ioc, m->name[0] ? findRecordOf(m->ioc->cat, m->name) : -1, &(ebpfMonFlowSumPart){
                ebpfMonFlowIsStalled(c), (double)(now - c->since) / 1e9, sub.waiting, rate + m->overrunRate });
        v->mergedRate += m->overrunRate;
        v->sum[c->sum].mergedRate += m->overrunRate;
        v->sum[c->sum].subscriptions++;
        placeRow(d, &(rowPlace){ 1e6 * ebpfMonFlowMonitorGetState(&d->pva, m, now, &since) +
                                 1e3 * (rate + m->overrunRate) + sub.waiting, NULL, 0, m, 0 });
    }
}

/* Of a gateway the clients behind it, as far as they are known. row->pv is set. */
static void fillClient(const ebpfMonSubscriptions *d, const ebpfMonFlowClient *c, ebpfMonSubscriptionRow *row)
{
    ebpfMonPacketBehind behind = { .clients = 0 };

    if (c->pid)
        ebpfMonPacketClientsFindBehind(d->pva.from, c->pid, row->pv, &behind);
    if (behind.clients == 1 && !behind.unknown)
        snprintf(row->client, sizeof(row->client), "%s@%.40s through gateway", behind.user[0] ? behind.user : "?",
                 behind.host);
    else if (behind.clients)
        snprintf(row->client, sizeof(row->client), "%u clients%s through gateway", behind.clients,
                 behind.unknown ? " at least" : "");
    else
        snprintf(row->client, sizeof(row->client), "%s", c->name);
    if (c->pid)
        snprintf(row->process, sizeof(row->process), "%s (%d)", c->command, (int)c->pid);
    row->unsent = c->inBuffer + (c->hasTcp ? c->tcp.notSent : 0);
}

static void fillLast(epicsTimeStamp at, ebpfMonSubscriptionRow *row)
{
    epicsTimeToStrftime(row->last, sizeof(row->last), "%H:%M:%S", &at);
}

/* What was merged is known of what the queue of the IOC merges and counts, and of updates which say so: at least. */
static void fillMonitor(const ebpfMonSubscriptions *d, const ebpfMonFlowMonitor *m, ebpfMonSubscriptionRow *row)
{
    const ebpfMonFlowPvaClient *c = &d->pva.client[m->client];
    ebpfMonEventSubscription sub;
    double rate;

    snprintf(row->ioc, sizeof(row->ioc), "%s", c->serverName);
    snprintf(row->pv, sizeof(row->pv), "%.*s", (int)sizeof(row->pv) - 1, m->name[0] ? m->name : "not known");
    fillClient(d, &c->is, row);
    ebpfMonFlowMonitorText(&d->pva, m, ebpfMonClockMonotonic(), row->state, sizeof(row->state));
    row->rate = m->rate;
    row->merged = m->overruns ? (double)m->overruns : NAN;
    if (m->updates)
        fillLast(ebpfMonClockWallTime(m->updatedAt), row);
    if (ebpfMonFlowMonitorGetQueue(m, &sub, &rate))
        return;
    row->waiting = sub.waiting;
    if (sub.isCopied)
        row->merged = (double)(sub.merged + m->overruns);
}

static void fillOther(const ebpfMonFlowIoc *ioc, size_t index, ebpfMonSubscriptionRow *row)
{
    const ebpfMonEventSubscription *s = &ioc->others.lists->sub[index];
    const ebpfMonEventOther *other = &ioc->others.lists->other[s->channel];

    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
    snprintf(row->pv, sizeof(row->pv), "%.*s", (int)sizeof(row->pv) - 1, other->name);
    if (ebpfMonFlowIocGetOwner(ioc, s) == ebpfMonFlowQsrv1)
        snprintf(row->client, sizeof(row->client), "all pvAccess clients of this PV");
    else if (other->monitors)
        snprintf(row->client, sizeof(row->client), "one of %u pvAccess clients", other->monitors);
    else
        snprintf(row->client, sizeof(row->client), "a pvAccess client");
    if (ioc->stoppedAt)
        snprintf(row->state, sizeof(row->state), "IOC stands still since %.0f s",
                 (double)(ebpfMonClockMonotonic() - ioc->stoppedAt) / 1e9);
    else
        snprintf(row->state, sizeof(row->state), "not known");
    row->rate = NAN;
    row->merged = s->isCopied ? (double)s->merged : NAN;
    row->waiting = s->waiting;
}

static void fillRow(const ebpfMonSubscriptions *d, const rowPlace *place, ebpfMonSubscriptionRow *row)
{
    const ebpfMonFlowIoc *ioc = place->ioc;
    const ebpfMonEventSubscription *s;
    const ebpfMonFlowChannel *channel;

    if (place->monitor) {
        fillMonitor(d, place->monitor, row);
        return;
    }
    if (place->isOther) {
        fillOther(ioc, place->sub, row);
        return;
    }
    s = &ioc->ca.lists->sub[place->sub];
    channel = &ioc->channel[s->channel];
    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
    snprintf(row->pv, sizeof(row->pv), "%s", channel->pv);
    fillClient(d, &ioc->client[s->client], row);
    ebpfMonFlowText(&ioc->client[s->client], row->state, sizeof(row->state));
    row->rate = channel->rate;
    row->merged = s->isCopied ? (double)s->merged : NAN;
    row->waiting = s->waiting;
    if (channel->sent.updates)
        fillLast(ebpfMonClockStamp(channel->sent.lastAt), row);
}

static void describeState(ebpfMonSubscriptions *d)
{
    ebpfMonSubscriptionValues *v = &d->values;
    char more[40] = "";

    if (d->period > 1.2 * PERIOD)
        snprintf(more, sizeof(more), ", every %.1f s", d->period);
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].why[0]) {
            snprintf(v->state, sizeof(v->state), "IOC %s: not read: %s", d->ioc[i].name, d->ioc[i].why);
            return;
        }
    snprintf(v->state, sizeof(v->state), "reads %u subscriptions of %u clients in %u IOCs%s", v->subscriptions,
             v->clients, v->iocs, more);
}

static void makeValues(ebpfMonSubscriptions *d)
{
    uint64_t now = ebpfMonClockMonotonic();
    ebpfMonSubscriptionValues *v = &d->values;

    memset(v, 0, offsetof(ebpfMonSubscriptionValues, cost));
    memset(v->row, 0, sizeof(v->row));
    memset(v->state, 0, sizeof(v->state));
    memset(v->sum, 0, sizeof(v->sum));
    memset(v->ofRecord, 0, sizeof(v->ofRecord));
    memset(v->ofIoc, 0, sizeof(v->ofIoc));
    v->sums = v->ill = 0;
    d->places = 0;
    ebpfMonFlowSumsBegin(&d->sums, v->ofRecord, d->ioc, d->iocs);
    v->ofIocs = d->iocs;
    for (unsigned i = 0; i < d->iocs; i++)
        snprintf(v->ofIoc[i].ioc, sizeof(v->ofIoc[i].ioc), "%s", d->ioc[i].isRead ? d->ioc[i].name : "");
    for (unsigned i = 0; i < d->iocs; i++)
        sumIoc(d, &d->ioc[i], now);
    sumPva(d, now);
    qsort(d->place, d->places, sizeof(d->place[0]), comparePlaces);
    for (v->rows = 0; v->rows < d->places; v->rows++) {
        fillRow(d, &d->place[v->rows], &v->row[v->rows]);
        v->ill += d->place[v->rows].badness > 0;
    }
    describeState(d);
}

/* --- writes that cause themselves ------------------------------------------------------------------------------- */

void ebpfMonSubscriptionsAddPut(void *subs, const ebpfMonModulePut *put)
{
    ebpfMonSubscriptions *d = subs;

    ebpfMonFeedbackAddPut(d->feedback, put);
}

void ebpfMonSubscriptionsAddFeedback(ebpfMonSubscriptions *d, const char *ioc, const char *pv, char *text, size_t size)
{
    ebpfMonFeedbackAddText(d->feedback, ioc, pv, text, size);
}

static int isSubscribed(void *arg, const char *name, const char *pv, const char *peer)
{
    const ebpfMonSubscriptions *d = arg;
    const ebpfMonFlowIoc *ioc = NULL;
    long record;

    for (unsigned i = 0; i < d->iocs; i++)
        if (strcmp(d->ioc[i].name, name) == 0)
            ioc = &d->ioc[i];
    record = ioc && ioc->isRead ? findRecordOf(ioc->cat, pv) : -1;
    for (size_t i = 0; record >= 0 && i < ioc->ca.lists->subs; i++) {
        const ebpfMonEventSubscription *s = &ioc->ca.lists->sub[i];

        if (!s->isGone && ioc->channel[s->channel].record == record && strcmp(ioc->client[s->client].peer, peer) == 0)
            return 1;
    }
    for (size_t i = 0; record >= 0 && i < d->pva.monitors; i++) {
        const ebpfMonFlowMonitor *m = &d->pva.monitor[i];

        if (m->ioc == ioc && m->name[0] && findRecordOf(ioc->cat, m->name) == record &&
            strcmp(d->pva.client[m->client].is.peer, peer) == 0)
            return 1;
    }
    return 0;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

static asking *takeAsking(ebpfMonSubscriptions *d)
{
    asking *a;

    epicsMutexMustLock(d->lock);
    a = (asking *)ellGet(&d->askings);
    epicsMutexUnlock(d->lock);
    return a;
}

static void freeAsking(asking *a)
{
    epicsEventDestroy(a->done);
    free(a);
}

static void finishAsking(ebpfMonSubscriptions *d, asking *a)
{
    int isAbandoned;

    epicsMutexMustLock(d->lock);
    isAbandoned = a->isAbandoned;
    a->isAnswered = 1;
    if (!isAbandoned)
        epicsEventMustTrigger(a->done); /* under the lock: who waits frees it */
    epicsMutexUnlock(d->lock);
    if (isAbandoned)
        freeAsking(a);
}

static void cutBlanks(char *text)
{
    for (size_t n = strlen(text); n && text[n - 1] == ' '; n--)
        text[n - 1] = 0;
}

/* The lines of the steps: their name, verdict and reason stand at columns 2, 15 and 30 (why.c). */
static void splitSteps(ebpfMonSubscriptionValues *v)
{
    for (const char *line = v->whyText; line && v->whySteps < EBPFMON_WHY_STEPS; line = strchr(line, '\n')) {
        ebpfMonWhyRow *row = &v->why[v->whySteps];

        line += *line == '\n';
        if (strncmp(line, "  ", 2) != 0 || strcspn(line, "\n") < 30)
            continue;
        snprintf(row->step, sizeof(row->step), "%.12s", line + 2);
        snprintf(row->verdict, sizeof(row->verdict), "%.14s", line + 15);
        snprintf(row->reason, sizeof(row->reason), "%.*s", (int)strcspn(line + 30, "\n"), line + 30);
        cutBlanks(row->step);
        cutBlanks(row->verdict);
        v->whySteps++;
    }
}

static void answerQuestions(ebpfMonSubscriptions *d)
{
    char question[QUESTION];
    asking *a;

    while ((a = takeAsking(d)) != NULL) {
        d->answer(d, a->question, a->answer, sizeof(a->answer));
        finishAsking(d, a);
    }
    epicsMutexMustLock(d->lock);
    memcpy(question, d->question, sizeof(question));
    d->question[0] = 0;
    epicsMutexUnlock(d->lock);
    if (!question[0])
        return;
    memset(d->values.whyText, 0, sizeof(d->values.whyText));
    memset(d->values.why, 0, sizeof(d->values.why));
    d->values.whySteps = 0;
    ebpfMonModuleShowValues(d->module, &d->shown, &d->values, sizeof(d->values)); /* not the answer to another one */
    d->answer(d, question, d->values.whyText, sizeof(d->values.whyText));
    splitSteps(&d->values);
}

/* Sets the cost, and the period that keeps it small: "cpu" ns were used for a look. */
static void countCost(ebpfMonSubscriptions *d, uint64_t cpu)
{
    uint64_t now = ebpfMonClockMonotonic();
    double needed = (double)cpu / 1e9 / EBPFMON_SUBSCRIPTIONS_COST;

    d->period = needed > PERIOD ? (needed + d->period) / 2 : PERIOD;
    d->cpu += cpu;
    if (now - d->costSince < COST_NS)
        return;
    d->values.cost = floor(1e5 * (double)d->cpu / (double)(now - d->costSince) + 0.5) / 1e3;
    d->cpu = 0;
    d->costSince = now;
}

/* When to look again (s): less often as long as nothing moves and nobody is stalled. */
static double choosePause(ebpfMonSubscriptions *d)
{
    uint64_t now = ebpfMonClockMonotonic();

    d->quiet = d->hasMoved || d->needsSockets ? 0 : d->quiet + 1;
    return d->quiet <= QUIET_LOOKS ? d->period : (double)(ebpfMonClockNextLook(now) - now) / 1e9;
}

static void runSubscriptions(ebpfMonWorker *worker, void *arg)
{
    ebpfMonSubscriptions *d = arg;
    double next = 0;

    d->costSince = ebpfMonClockMonotonic();
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t before = ebpfMonForeignGetCpu();

        ebpfMonGoneIocsUpdate(&d->known, d->core->targets, ebpfMonClockMonotonic());
        answerQuestions(d);
        if (ebpfMonClockSeconds() >= next) {
            readFlows(d);
            ebpfMonFeedbackTell(d->feedback, isSubscribed, d);
            makeValues(d);
            countCost(d, ebpfMonForeignGetCpu() - before);
            next = ebpfMonClockSeconds() + choosePause(d);
        }
        ebpfMonModuleShowValues(d->module, &d->shown, &d->values, sizeof(d->values));
        ebpfMonWorkerWait(worker, next - ebpfMonClockSeconds());
    }
}

int ebpfMonSubscriptionsBegin(void *subs, const ebpfMonModuleCore *core)
{
    ebpfMonSubscriptions *d = subs;

    d->clients = ebpfMonClientsGet("subscriptions");
    if (!d->clients)
        return -1;
    d->ownCore = *core;
    d->core = &d->ownCore;
    return ebpfMonSharedWorkerSet(&d->worker,
                                  ebpfMonWorkerStart("ebpfMonFlows", epicsThreadPriorityLow, runSubscriptions, d));
}

int ebpfMonSubscriptionsStop(void *subs, double seconds)
{
    return ebpfMonSharedWorkerStop(&((ebpfMonSubscriptions *)subs)->worker, seconds);
}

void ebpfMonSubscriptionsWake(void *subs)
{
    ebpfMonSharedWorkerWake(&((ebpfMonSubscriptions *)subs)->worker);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

void ebpfMonSubscriptionsAsk(ebpfMonSubscriptions *d, const char *question)
{
    epicsMutexMustLock(d->lock);
    ebpfMonTextCopy(d->question, sizeof(d->question), question);
    epicsMutexUnlock(d->lock);
    ebpfMonSharedWorkerWake(&d->worker);
}

void ebpfMonSubscriptionsAskAndWait(ebpfMonSubscriptions *d, const char *question, char *text, size_t size)
{
    asking *a = d->core ? calloc(1, sizeof(*a)) : NULL;
    int isAnswered;

    if (!a) {
        snprintf(text, size, "%s\n", d->core ? "out of memory" : "the monitor does not run");
        return;
    }
    a->done = epicsEventMustCreate(epicsEventEmpty);
    snprintf(a->question, sizeof(a->question), "%s", question);
    epicsMutexMustLock(d->lock);
    ellAdd(&d->askings, &a->node);
    epicsMutexUnlock(d->lock);
    ebpfMonSharedWorkerWake(&d->worker);
    epicsEventWaitWithTimeout(a->done, ANSWER_SECONDS);
    epicsMutexMustLock(d->lock);
    isAnswered = a->isAnswered;
    a->isAbandoned = !isAnswered;
    epicsMutexUnlock(d->lock);
    if (!isAnswered) {
        snprintf(text, size, "no answer in %.0f s: an IOC does not let itself be read. Ask again\n", ANSWER_SECONDS);
        return;
    }
    snprintf(text, size, "%s", a->answer);
    freeAsking(a);
}

int ebpfMonSubscriptionsLook(ebpfMonSubscriptions *d)
{
    int status = -1;

    for (int i = 0; status && i < LOOK_TRIES; i++) {
        status = ebpfMonClientsLook(d->clients, LOOK_SECONDS);
        ebpfMonWorkerGiveSignHere();
    }
    d->needsSockets = 1;
    readFlows(d);
    return status;
}

static void tellMonitor(const ebpfMonSubscriptions *d, const ebpfMonFlowMonitor *m, long record,
                        ebpfMonSubscriptionsEachFn each, void *arg)
{
    ebpfMonFlowClient client = d->pva.client[m->client].is;
    ebpfMonFlowSubscription sub = { .record = record, .mask = DBE_VALUE | DBE_ALARM, .isEnabled = 1,
                                    .rate = m->rate, .monitor = m };
    ebpfMonEventSubscription queue;

    client.flow = ebpfMonFlowMonitorGetState(&d->pva, m, ebpfMonClockMonotonic(), &client.since);
    if (ebpfMonFlowMonitorGetQueue(m, &queue, &sub.mergedRate) == 0) {
        sub.hasQueue = 1;
        sub.mask = queue.mask;
        sub.isCopied = queue.isCopied;
        sub.waiting = queue.waiting;
        sub.merged = queue.merged;
    }
    snprintf(sub.pv, sizeof(sub.pv), "%.*s", (int)sizeof(sub.pv) - 1, m->name);
    each(arg, &client, &sub);
}

long ebpfMonSubscriptionsEach(ebpfMonSubscriptions *d, uint32_t iocId, long record, ebpfMonSubscriptionsEachFn each,
                              void *arg, char *why, size_t size)
{
    const ebpfMonFlowIoc *ioc = findIoc(d, iocId);
    long found = 0;

    if (!ioc || !ioc->isRead) {
        snprintf(why, size, "%s", ioc && ioc->why[0] ? ioc->why : ioc ? "its memory cannot be read now" :
                                                       "it has no CA server, or its clients cannot be read now");
        found = -1;
    }
    for (size_t i = 0; found >= 0 && i < ioc->ca.lists->subs; i++) {
        const ebpfMonEventSubscription *s = &ioc->ca.lists->sub[i];
        const ebpfMonFlowChannel *channel = &ioc->channel[s->channel];
        ebpfMonFlowSubscription sub = { .record = channel->record, .at = s->at, .mask = s->mask,
                                        .isCopied = s->isCopied, .isEnabled = s->isEnabled,
                                        .waiting = s->waiting, .merged = s->merged,
                                        .mergedRate = ioc->ca.mergedRate[i], .rate = channel->rate, .hasQueue = 1,
                                        .channel = channel };

        if (channel->record != record || s->isGone)
            continue;
        snprintf(sub.pv, sizeof(sub.pv), "%s", channel->pv);
        each(arg, &ioc->client[s->client], &sub);
        found++;
    }
    for (size_t i = 0; ioc && ioc->cat && i < d->pva.monitors; i++) {
        const ebpfMonFlowMonitor *m = &d->pva.monitor[i];

        if (m->ioc != ioc || !m->name[0] || findRecordOf(ioc->cat, m->name) != record)
            continue;
        tellMonitor(d, m, record, each, arg);
        found += found >= 0;
    }
    return found;
}

/* "found": so many were before. Only the last one on a way is a client, but each connection may be the worst. */
static unsigned addBehind(const ebpfMonSubscriptions *d, pid_t gateway, const char *pv, const char *name,
                          unsigned depth, unsigned found, ebpfMonFlowClient *worst)
{
    for (size_t i = 0; gateway && depth < GATEWAYS_IN_A_ROW && i < d->pva.monitors; i++) {
        const ebpfMonFlowMonitor *m = &d->pva.monitor[i];
        const ebpfMonFlowPvaClient *c = &d->pva.client[m->client];
        ebpfMonFlowClient behind = c->is;
        const unsigned before = found;

        if (c->iocId || c->server != gateway || (pv[0] && strcmp(m->name, pv) != 0))
            continue;
        found = addBehind(d, c->is.pid, pv, name, depth + 1, found, worst);
        if (found == before && name[0] && !ebpfMonFlowIsNamed(&c->is, name))
            continue;
        behind.flow = ebpfMonFlowMonitorGetState(&d->pva, m, ebpfMonClockMonotonic(), &behind.since);
        if (!found || behind.flow > worst->flow)
            *worst = behind;
        found += found == before;
    }
    return found;
}

unsigned ebpfMonSubscriptionsFindBehind(const ebpfMonSubscriptions *d, const ebpfMonFlowClient *gateway, const char *pv,
                                        const char *name, ebpfMonFlowClient *worst)
{
    return addBehind(d, gateway->pid, pv, name, 0, 0, worst);
}

int ebpfMonSubscriptionsFindServed(const ebpfMonSubscriptions *d, const char *pv, const char *client, char *text,
                                   size_t size)
{
    ebpfMonFlowState worst = ebpfMonFlowFine;
    uint64_t now = ebpfMonClockMonotonic();
    int isFound = 0;

    for (size_t i = 0; i < d->pva.monitors; i++) {
        const ebpfMonFlowMonitor *m = &d->pva.monitor[i];
        const ebpfMonFlowPvaClient *c = &d->pva.client[m->client];
        ebpfMonFlowClient is = c->is;
        char flow[80];

        if (strcmp(m->name, pv) != 0 || (client[0] && !ebpfMonFlowIsNamed(&c->is, client)))
            continue;
        is.flow = ebpfMonFlowMonitorGetState(&d->pva, m, now, &is.since);
        if (isFound && is.flow <= worst)
            continue;
        isFound = 1;
        worst = is.flow;
        ebpfMonFlowText(&is, flow, sizeof(flow));
        snprintf(text, size, "%s %s serves it by pvAccess: %s: %s (%s, %s, pid %d)", c->iocId ? "IOC" : "server",
                 c->serverName, flow, is.name, is.peer, is.command, (int)is.pid);
    }
    return isFound;
}

int ebpfMonSubscriptionsFindGone(const ebpfMonSubscriptions *d, const char *record, char *text, size_t size)
{
    return ebpfMonGoneIocsFind(&d->known, record, text, size);
}

unsigned ebpfMonSubscriptionsCountOthers(ebpfMonSubscriptions *d, uint32_t iocId, long record,
                                         unsigned count[EBPFMON_FLOW_OWNERS])
{
    return ebpfMonFlowIocCountOthers(findIoc(d, iocId), record, count);
}
