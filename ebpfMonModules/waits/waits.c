/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits in the watched IOCs, and for what: puts with completion and active records (iocWaits.h); while a thread
 * hangs, threads (waitGraph.h). The thread of the module reads them once a second, less often in a silence; records in
 * parts, so that it takes no more than EBPFMON_WAITS_COST of a core. Nothing is attached.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <epicsMutex.h>
#include <epicsThread.h>

#include "clients/clients.h"
#include "common/clock.h"
#include "common/text.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "export/log/putLogs.h"
#include "host/foreign.h"
#include "host/procStat.h"
#include "model/published.h"
#include "model/put.h"
#include "probe/kernelTables.h"
#include "record/shellCommand.h"
#include "waits/iocWaits.h"
#include "watch/target.h"

#define EBPFMON_WAITS_COST 0.002 /* cores */
#define EBPFMON_WAIT_ROWS  100

/* A row of the table WAITS. */
typedef struct {
    char   ioc[EBPFMON_IOCNAME_SIZE];
    char   pv[80];
    char   kind[16];       /* "put", "process", "active"; "thread": a thread that hangs, and "pv" is its name */
    char   client[220];
    char   since[32];      /* "12:03:04", "before 12:03:04" */
    double seconds;
    char   waits[EBPFMON_WAIT_TEXT];
} ebpfMonWaitRow;

typedef struct {
    unsigned puts;         /* under way for longer than ebpfMonWaitLimit */
    double   putMax;       /* s: the longest */
    char     putCause[EBPFMON_WAIT_TEXT]; /* … and for what it waits */
    unsigned actives;      /* records that are active for longer than that */
    double   activeMax;
    unsigned deadlocks;    /* threads that wait for each other, or for a mutex whose owner has ended */
    char     deadlockCause[EBPFMON_WAIT_TEXT];
    double   cost;         /* percent of one core */
    char     state[200];
    unsigned rows;
    ebpfMonWaitRow row[EBPFMON_WAIT_ROWS];
    char     text[16000];
} ebpfMonWaitValues;

#define PERIOD      1.0  /* s */
#define IOCS_MAX    256
#define NOTES       256  /* puts that are kept, to find when one that waits began */
#define LATE_NS     (3 * EBPFMON_SECOND_NS) /* a put may be published so late (put/iocPuts.h, put/putJoin.h) */
#define COST_NS     (10 * EBPFMON_SECOND_NS) /* the cost is a mean over this time */
#define RECORD_NS   1000 /* that one record takes, until it is measured */
#define QUIET_LOOKS 3
#define TOLD_MAX    5    /* events of one look */
#define LATE_TOLD_NS (60 * EBPFMON_SECOND_NS) /* IOC_EVENTS tells so often at most why scans of an IOC are late */
#define GRAPH_NS    (5 * EBPFMON_SECOND_NS) /* the threads of an IOC in which something hangs are read so often */

/* A put that was published. */
typedef struct {
    uint64_t at;
    char ioc[EBPFMON_IOCNAME_SIZE], pv[80], peer[24], who[128], user[40], host[64], value[80];
    ebpfMonThrough through;
    int      isNumber;
    double   number;
    epicsTimeStamp time;
} putNote;

/* "begin": of the hang, which tells it from another one of this thread; 0: not known, or it is only late. */
typedef struct {
    uint32_t iocId;
    pid_t    tid;
    int      isLate;
    uint64_t begin;
} ebpfMonHang;

typedef struct {
    const ebpfMonModule *module;
    ebpfMonSharedWorker worker;
    ebpfMonModuleCore core;
    ebpfMonClients *clients;
    epicsMutexId lock;         /* guards the next three */
    putNote  note[NOTES];
    unsigned notes;            /* ever */
    int      isSleeping;       /* the thread waits for longer than PERIOD: a put or an event wakes it */
    /* the thread's own: it reads the memory of IOCs, which may not answer, so it holds no lock */
    ebpfMonIocWaits ioc[IOCS_MAX];
    unsigned iocs;
    double   recordNs;         /* CPU time that one record takes */
    double   round;            /* s: in which all records are looked at */
    unsigned quiet, told;
    ebpfMonHang hang[2 * EBPFMON_HUNG_THREADS]; /* threads that hang; then scan threads that are late and stand still */
    unsigned hangs;
    struct { char hang[80], late[80]; } cause, causeShown; /* as ebpfMonPublished.hangCause and lateCause */
    uint64_t cpu, costSince;   /* ns of CPU time since then */
    ebpfMonWaitValues values;
    ebpfMonWaitValues shown;   /* under the lock of the published values */
} ebpfMonWaits;

/* What waits for longer than so many seconds is shown. One per process, because it is a variable of iocsh. */
double ebpfMonWaitLimit = 5;
epicsExportAddress(double, ebpfMonWaitLimit);

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
static ebpfMonWaits *newWaits(const ebpfMonModule *module)
{
    ebpfMonWaits *w = calloc(1, sizeof(*w));

    if (!w)
        return NULL;
    w->module = module;
    w->lock = epicsMutexMustCreate();
    w->recordNs = RECORD_NS;
    ebpfMonSharedWorkerInit(&w->worker);
    return w;
}

static int isLong(uint64_t since, uint64_t now)
{
    return (double)(now - since) / 1e9 >= ebpfMonWaitLimit;
}

/* --- when a put began, and whose it is -------------------------------------------------------------------------- */

/* something has happened. Any thread */
static void wakeWaits(ebpfMonWaits *w)
{
    int isSleeping;

    epicsMutexMustLock(w->lock);
    isSleeping = w->isSleeping;
    w->isSleeping = 0;
    epicsMutexUnlock(w->lock);
    if (isSleeping)
        ebpfMonSharedWorkerWake(&w->worker);
}

static void addPut(void *waits, const ebpfMonModulePut *put)
{
    ebpfMonWaits *w = waits;
    const ebpfMonPut *from = put->context;
    putNote *n;

    if (put->isAutomatic)
        return;
    epicsMutexMustLock(w->lock);
    n = &w->note[w->notes++ % NOTES];
    n->at = put->at;
    snprintf(n->ioc, sizeof(n->ioc), "%s", put->ioc);
    snprintf(n->pv, sizeof(n->pv), "%s", put->pv);
    snprintf(n->peer, sizeof(n->peer), "%s", put->peer);
    snprintf(n->who, sizeof(n->who), "%s", put->who);
    snprintf(n->user, sizeof(n->user), "%s", put->user);
    snprintf(n->host, sizeof(n->host), "%s", put->host);
    ebpfMonTextCopy(n->value, sizeof(n->value), put->value);
    n->through = from->through;
    n->isNumber = from->isNumber;
    n->number = from->number;
    n->time = put->time;
    epicsMutexUnlock(w->lock);
    wakeWaits(w);
}

static int isNoteOf(const putNote *n, const ebpfMonIocWaits *ioc, const ebpfMonWaitingPut *put, uint64_t earliest)
{
    return n->at >= earliest && n->at <= put->since && strcmp(n->ioc, ioc->name) == 0 &&
           strcmp(n->pv, put->field) == 0 && (!put->peer[0] || strcmp(n->peer, put->peer) == 0);
}

/* A put that the look before did not find has begun since then. If only one put can be meant, its time is exact; if
 * several can, and all are of one client, this is the client. */
static void findBegin(ebpfMonWaits *w, const ebpfMonIocWaits *ioc, ebpfMonWaitingPut *put)
{
    uint64_t before = (uint64_t)((w->round + PERIOD) * 1e9), earliest = put->since > before ? put->since - before : 0;
    const putNote *found = NULL;
    int isOne = 1, isOneClient = 1;

    if (ioc->rounds < 1)
        return;
    epicsMutexMustLock(w->lock);
    for (unsigned i = 0; i < NOTES; i++) {
        const putNote *n = &w->note[i];

        if (!isNoteOf(n, ioc, put, earliest))
            continue;
        isOne &= !found || found->at == n->at;
        isOneClient &= !found || strcmp(found->who, n->who) == 0;
        found = n;
    }
    if (found && isOneClient && !put->who[0])
        snprintf(put->who, sizeof(put->who), "%s", found->who);
    put->note.isKnown = found && isOneClient;
    if (put->note.isKnown) {
        snprintf(put->note.user, sizeof(put->note.user), "%s", found->user);
        snprintf(put->note.host, sizeof(put->note.host), "%s", found->host);
        put->note.through = (int)found->through;
    }
    if (found && isOne) {
        snprintf(put->note.value, sizeof(put->note.value), "%s", found->value);
        put->note.isNumber = found->isNumber;
        put->note.number = found->number;
        put->note.time = found->time;
        put->since = found->at;
        put->isExact = 1;
    }
    epicsMutexUnlock(w->lock);
}

/* The process of a client of Channel Access, as the look at the clients has found it. */
static void findProcess(ebpfMonWaits *w, const ebpfMonIocWaits *ioc, ebpfMonWaitingPut *put)
{
    ebpfMonClientTable *table = w->clients->table;
    const ebpfMonClientIoc *from;

    ebpfMonClientTableLock(table);
    for (unsigned n = 0; (from = ebpfMonClientTableGet(table, n)) != NULL; n++)
        for (unsigned i = 0; from->id == ioc->id && from->clients && i < from->clients->clients; i++)
            if (from->clients->client[i].at == put->client && from->facts[i].who.peerPid &&
                strcmp(from->facts[i].who.peer, put->peer) == 0)
                snprintf(put->process, sizeof(put->process), "%s (%u)", from->facts[i].who.command,
                         from->facts[i].who.peerPid);
    ebpfMonClientTableUnlock(table);
}

/* --- a look ----------------------------------------------------------------------------------------------------- */

static ebpfMonIocWaits *findIoc(ebpfMonWaits *w, uint32_t id)
{
    for (unsigned i = 0; i < w->iocs; i++)
        if (w->ioc[i].id == id)
            return &w->ioc[i];
    if (w->iocs == IOCS_MAX)
        return NULL;
    w->ioc[w->iocs] = (ebpfMonIocWaits){ .id = id };
    return &w->ioc[w->iocs++];
}

static void takeIocs(ebpfMonWaits *w)
{
    unsigned kept = 0;

    ebpfMonTargetsLock(w->core.targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(w->core.targets); t; t = t->next) {
        int isWatched = !t->gone && t->running && t->cat && t->level > ebpfMonLevelOff;
        ebpfMonIocWaits *ioc = isWatched ? findIoc(w, t->iocId) : NULL;

        if (!ioc)
            continue;
        ioc->isSeen = 1;
        ioc->pid = t->pid;
        snprintf(ioc->name, sizeof(ioc->name), "%s", t->name);
        if (ioc->cat != t->cat)
            ebpfMonIocWaitsSetCatalogue(ioc, ebpfMonCatalogueHold(t->cat));
    }
    ebpfMonTargetsUnlock(w->core.targets);
    for (unsigned i = 0; i < w->iocs; i++) {
        if (!w->ioc[i].isSeen) {
            ebpfMonIocWaitsClear(&w->ioc[i]);
            continue;
        }
        w->ioc[kept] = w->ioc[i];
        w->ioc[kept++].isSeen = 0;
    }
    w->iocs = kept;
}

static void lookAtIocs(ebpfMonWaits *w, uint64_t now)
{
    uint64_t before = ebpfMonForeignGetCpu();
    uint64_t all = 0, looked = 0;
    double share;

    for (unsigned i = 0; i < w->iocs; i++)
        all += w->ioc[i].cat->count;
    share = all ? EBPFMON_WAITS_COST * PERIOD * 1e9 / (w->recordNs * (double)all) : 1;
    if (share > 1)
        share = 1;
    w->round = PERIOD / share;
    for (unsigned i = 0; i < w->iocs; i++) {
        uint32_t count = (uint32_t)ceil(share * w->ioc[i].cat->count);

        ebpfMonIocWaitsLook(&w->ioc[i], count, now);
        looked += count;
    }
    if (looked)
        w->recordNs = (3 * w->recordNs + (double)(ebpfMonForeignGetCpu() - before) / (double)looked) / 4;
}

/* --- why threads hang ------------------------------------------------------------------------------------------- */

static void readHangs(ebpfMonWaits *w)
{
    const ebpfMonPublished *p = ebpfMonPublishedLock();

    w->hangs = 0;
    for (unsigned i = 0; i < p->health.hangs && i < EBPFMON_HUNG_THREADS; i++, w->hangs++) {
        w->hang[w->hangs].iocId = p->health.hung[i].iocId;
        w->hang[w->hangs].tid = (pid_t)p->health.hung[i].tid;
        w->hang[w->hangs].isLate = 0;
        w->hang[w->hangs].begin = p->health.hung[i].begin;
    }
    for (unsigned i = 0; i < p->health.standing; i++, w->hangs++) {
        w->hang[w->hangs].iocId = p->health.lateThread[i].iocId;
        w->hang[w->hangs].tid = (pid_t)p->health.lateThread[i].tid;
        w->hang[w->hangs].isLate = 1;
        w->hang[w->hangs].begin = 0;
    }
    ebpfMonPublishedUnlock();
}

/* "isBehind": not in a cycle itself. */
static void addCause(ebpfMonIocWaits *ioc, const ebpfMonHang *hang, int isBehind, uint64_t now)
{
    ebpfMonHangCause *c = &ioc->cause[ioc->causes];
    pid_t tid = hang->tid;

    if (ioc->causes == EBPFMON_HANG_CAUSES)
        return;
    *c = (ebpfMonHangCause){ .tid = tid, .begin = hang->begin, .since = hang->begin ? hang->begin : now,
                             .isLate = hang->isLate };
    c->isForEver = ebpfMonWaitGraphDescribe(&ioc->graph, tid, c->text, sizeof(c->text), c->brief,
                                            sizeof(c->brief)) && !isBehind;
    if (!c->text[0])
        return;
    ebpfMonWaitGraphAddWaiters(&ioc->graph, tid, c->waiters, sizeof(c->waiters));
    for (size_t i = 0; i < ioc->graph.threads; i++)
        if (ioc->graph.thread[i].tid == tid) {
            memcpy(c->name, ioc->graph.thread[i].name, sizeof(c->name));
            c->switches = ioc->graph.thread[i].switches;
        }
    ioc->causes++;
}

/* Is it the cause that was found before? */
static void carryCause(ebpfMonHangCause *c, const ebpfMonHangCause *old)
{
    if (old->tid != c->tid || (old->begin && old->begin != c->begin)) /* at first it may have been late only */
        return;
    if (!c->begin && old->switches == c->switches) /* else it may have gone on, and stand again */
        c->since = old->since;
    c->isTold = old->isTold;
    c->isOld = 1;
}

/* Threads in a cycle have one cause: that of the first of them. */
static int hasCause(const ebpfMonIocWaits *ioc, pid_t tid)
{
    pid_t cycle = ebpfMonWaitGraphFindCycle(&ioc->graph, tid);

    for (unsigned i = 0; i < ioc->causes; i++)
        if (ioc->cause[i].tid == tid ||
            (cycle && ebpfMonWaitGraphFindCycle(&ioc->graph, ioc->cause[i].tid) == cycle))
            return 1;
    return 0;
}

static uint64_t findHangBegin(const ebpfMonWaits *w, const ebpfMonIocWaits *ioc, pid_t tid)
{
    for (unsigned i = 0; i < w->hangs; i++)
        if (w->hang[i].iocId == ioc->id && w->hang[i].tid == tid)
            return w->hang[i].begin;
    return 0;
}

/* The threads that hang, and all that are in a cycle. */
static void findCauses(ebpfMonWaits *w, ebpfMonIocWaits *ioc, uint64_t now)
{
    ebpfMonHangCause old[EBPFMON_HANG_CAUSES];
    unsigned olds = ioc->causes;

    memcpy(old, ioc->cause, sizeof(old));
    ioc->causes = 0;
    for (size_t i = 0; i < ioc->graph.threads; i++) {
        const ebpfMonWaitThread *t = &ioc->graph.thread[i];

        if ((ebpfMonWaitGraphFindCycle(&ioc->graph, t->tid) || (t->ended && t->isSame && !t->isTimed)) &&
            !hasCause(ioc, t->tid))
            addCause(ioc, &(ebpfMonHang){ .tid = t->tid, .begin = findHangBegin(w, ioc, t->tid) }, 0, now);
    }
    for (unsigned i = 0; i < w->hangs; i++)
        if (w->hang[i].iocId == ioc->id && !hasCause(ioc, w->hang[i].tid))
            addCause(ioc, &w->hang[i], 1, now);
    for (unsigned i = 0; i < ioc->causes; i++)
        for (unsigned k = 0; k < olds; k++)
            carryCause(&ioc->cause[i], &old[k]);
}

/* The threads are read twice, a second apart, and then less often: what is the same at both times is sure. */
static void updateGraph(ebpfMonWaits *w, ebpfMonIocWaits *ioc, uint64_t now)
{
    int isWanted = 0;

    for (unsigned i = 0; i < w->hangs; i++)
        isWanted |= w->hang[i].iocId == ioc->id;
    for (size_t i = 0; i < ioc->puts; i++)
        isWanted |= isLong(ioc->put[i].since, now);
    for (size_t i = 0; i < ioc->actives; i++) /* perhaps for a port of asyn */
        isWanted |= ioc->active[i].isActive && !ioc->active[i].isUnsure && isLong(ioc->active[i].since, now) &&
                    (ioc->graph.asynAt || !ioc->graph.isSearched);
    if (!isWanted || !ioc->isRead) {
        ebpfMonWaitGraphClear(&ioc->graph);
        ioc->causes = ioc->graphs = 0;
        return;
    }
    if (ioc->graphs >= 3 && now - ioc->graphAt < GRAPH_NS)
        return;
    if (ebpfMonWaitGraphRead(&ioc->graph, ioc->pid, ioc->mem, ioc->cat))
        return;
    ioc->graphs++;
    ioc->graphAt = now;
    findCauses(w, ioc, now);
}

/* --- what is published ------------------------------------------------------------------------------------------ */

static double age(uint64_t since, uint64_t now)
{
    return floor((double)(now - since) / 1e9);
}

static ebpfMonWaitRow *addRow(ebpfMonWaits *w, const ebpfMonIocWaits *ioc, const char *kind, const char *pv,
                              uint64_t since, int isExact, uint64_t now)
{
    ebpfMonWaitValues *v = &w->values;
    epicsTimeStamp begin = ebpfMonClockWallTime(since);
    ebpfMonWaitRow *row;
    char at[16] = "?";

    if (v->rows == EBPFMON_WAIT_ROWS)
        return NULL;
    row = &v->row[v->rows++];
    epicsTimeToStrftime(at, sizeof(at), "%H:%M:%S", &begin);
    snprintf(row->ioc, sizeof(row->ioc), "%s", ioc->name);
    snprintf(row->kind, sizeof(row->kind), "%s", kind);
    snprintf(row->pv, sizeof(row->pv), "%s", pv);
    snprintf(row->since, sizeof(row->since), "%s%s", isExact ? "" : "before ", at);
    row->seconds = age(since, now);
    return row;
}

/* One line more in the logs of puts, where the put itself is "ok". */
static void logPut(ebpfMonWaits *w, const ebpfMonWaitRow *row, const ebpfMonWaitingPut *put)
{
    ebpfMonPut *line = put->note.isKnown ? calloc(1, sizeof(*line)) : NULL;

    if (!line)
        return;
    line->result = ebpfMonPutPending;
    line->at = put->since;
    line->time = put->isExact ? put->note.time : ebpfMonClockWallTime(put->since);
    line->through = (ebpfMonThrough)put->note.through;
    line->count = 1;
    snprintf(line->ioc, sizeof(line->ioc), "%s", row->ioc);
    snprintf(line->pv, sizeof(line->pv), "%.68s", put->field);
    snprintf(line->val, sizeof(line->val), "%s", put->note.value);
    line->isNumber = put->note.isNumber;
    line->number = put->note.number;
    snprintf(line->user, sizeof(line->user), "%s", put->note.user);
    snprintf(line->host, sizeof(line->host), "%s", put->note.host);
    snprintf(line->peer, sizeof(line->peer), "%s", put->peer);
    snprintf(line->who, sizeof(line->who), "%s", put->who);
    ebpfMonTextAdd(line->message, sizeof(line->message), "pending %s%.0f s, waits for %.*s",
                   put->isExact ? "" : "at least ", row->seconds, (int)strcspn(row->waits, " "), row->waits);
    ebpfMonPutLogsAddPut(w->core.logs, line);
    free(line);
}

static void tellPut(ebpfMonWaits *w, const ebpfMonWaitRow *row, ebpfMonWaitingPut *put)
{
    char text[EBPFMON_MODULE_EVENT] = "";

    if (put->isTold || w->told >= TOLD_MAX)
        return;
    logPut(w, row, put);
    ebpfMonTextAdd(text, sizeof(text), "IOC %s: %s to %s by %s is under way since %s and waits for %s", row->ioc,
                   row->kind, row->pv, row->client[0] ? row->client : "a client that is not known", row->since,
                   row->waits);
    ebpfMonModuleAddEvent(text);
    put->isTold = 1;
    w->told++;
}

static void showPut(ebpfMonWaits *w, ebpfMonIocWaits *ioc, ebpfMonWaitingPut *put, uint64_t now)
{
    ebpfMonWaitValues *v = &w->values;
    ebpfMonWaitRow *row;

    if (put->hasWritten && !put->isExact && now - put->since < LATE_NS + (uint64_t)(ebpfMonWaitLimit * 1e9))
        findBegin(w, ioc, put);
    if (!isLong(put->since, now))
        return;
    if (put->client && !put->process[0])
        findProcess(w, ioc, put);
    v->puts++;
    row = addRow(w, ioc, put->isProcess ? "process" : "put", put->pv, put->since, put->isExact, now);
    if (!row)
        return;
    snprintf(row->client, sizeof(row->client), "%s%s%s", put->who, put->process[0] ? ", " : "", put->process);
    ebpfMonIocWaitsDescribe(ioc, put, now, row->waits, sizeof(row->waits));
    if (row->seconds >= v->putMax) {
        v->putMax = row->seconds;
        snprintf(v->putCause, sizeof(v->putCause), "%s waits for %s", put->pv,
                 ebpfMonCatalogueName(ioc->cat, put->waitedCount ? put->waited[0] : put->record));
    }
    tellPut(w, row, put);
}

/* A record for which a put waits stands in the row of the put. */
static int isWaitedFor(const ebpfMonIocWaits *ioc, const ebpfMonActiveRecord *r, uint64_t now)
{
    for (size_t i = 0; i < ioc->puts; i++)
        for (uint32_t k = 0; k < ioc->put[i].waitedCount && k < EBPFMON_WAITED_MAX; k++)
            if (ioc->put[i].waited[k] == r->record && isLong(ioc->put[i].since, now))
                return 1;
    return 0;
}

/* From level chains on the kernel part sees who has a record process. */
static void findBeginner(ebpfMonWaits *w, ebpfMonIocWaits *ioc, ebpfMonActiveRecord *r)
{
    struct ebpfMonCauseEvent cause;
    uint32_t slot = UINT32_MAX;

    r->begun[0] = 0;
    ebpfMonTargetsLock(w->core.targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(w->core.targets); t; t = t->next)
        if (t->iocId == ioc->id && t->cat == ioc->cat && t->recState &&
            t->recState[r->record].noted == EBPFMON_NOTED_CAUSE)
            slot = t->slot + r->record;
    ebpfMonTargetsUnlock(w->core.targets);
    if (slot != UINT32_MAX && ebpfMonKernelFindCause(slot, &cause) == 0 && (pid_t)cause.head.tgid == ioc->pid)
        ebpfMonIocWaitsSetBegun(ioc, &cause, r);
}

static void showActive(ebpfMonWaits *w, ebpfMonIocWaits *ioc, ebpfMonActiveRecord *r, uint64_t now)
{
    ebpfMonWaitRow *row;

    if (!r->isActive || r->isUnsure || !isLong(r->since, now))
        return;
    w->values.actives++;
    if (age(r->since, now) > w->values.activeMax)
        w->values.activeMax = age(r->since, now);
    if (isWaitedFor(ioc, r, now))
        return;
    row = addRow(w, ioc, "active", ebpfMonCatalogueName(ioc->cat, r->record), r->since, 0, now);
    if (!row)
        return;
    findBeginner(w, ioc, r);
    ebpfMonIocWaitsDescribeRecord(ioc, r, now, row->waits, sizeof(row->waits));
}

/* Nonzero: a scan thread that is late waits for this one, or is it. */
static int isLateThread(const ebpfMonWaits *w, const ebpfMonIocWaits *ioc, pid_t tid)
{
    pid_t cycle = ebpfMonWaitGraphFindCycle(&ioc->graph, tid);

    for (unsigned i = 0; i < w->hangs; i++)
        if (w->hang[i].isLate && w->hang[i].iocId == ioc->id &&
            (w->hang[i].tid == tid || (cycle && ebpfMonWaitGraphFindCycle(&ioc->graph, w->hang[i].tid) == cycle)))
            return 1;
    return 0;
}

/* Nonzero: what the thread does is no cause: it runs, is stopped, or waits for its next pass (periodicTask, dbScan.c).
 * If it is a late scan thread, the alarm says more by itself: the IOC, and the record that takes the time. */
static int isNoCause(const ebpfMonIocWaits *ioc, const ebpfMonHangCause *c)
{
    char idle[sizeof(c->name) + 24], runs[sizeof(c->name) + 8];
    size_t length = (size_t)snprintf(idle, sizeof(idle), "%s waits for an event", c->name);

    snprintf(runs, sizeof(runs), "%s runs", c->name);
    return strcmp(c->brief, runs) == 0 || ebpfMonProcStandsStill(ioc->pid, c->tid) ||
           (strncmp(c->brief, idle, length) == 0 && (!c->brief[length] || strstr(c->brief, ", at periodicTask")));
}

/* The event of a hang comes with the second reading, when it is known whether it is for ever. */
static void showCause(ebpfMonWaits *w, ebpfMonIocWaits *ioc, ebpfMonHangCause *c, uint64_t now)
{
    ebpfMonWaitValues *v = &w->values;
    char text[EBPFMON_MODULE_EVENT] = "";
    int told = c->isForEver ? 2 : c->isOld;
    ebpfMonWaitRow *row = addRow(w, ioc, "thread", c->name, c->since, 0, now);

    if (row)
        snprintf(row->waits, sizeof(row->waits), "%s", c->text);
    v->deadlocks += c->isForEver != 0;
    if (c->isForEver)
        snprintf(v->deadlockCause, sizeof(v->deadlockCause), "%s: %s", ioc->name, c->brief);
    if (!c->isLate && (!w->cause.hang[0] || c->isForEver))
        snprintf(w->cause.hang, sizeof(w->cause.hang), "%s", c->brief);
    if (!w->cause.late[0] && isLateThread(w, ioc, c->tid) && !isNoCause(ioc, c))
        snprintf(w->cause.late, sizeof(w->cause.late), "%s", c->brief);
    if (c->isLate && isNoCause(ioc, c))
        return;
    if (told <= c->isTold || w->told >= TOLD_MAX ||
        (c->isLate && !c->isForEver && ioc->lateToldAt && now - ioc->lateToldAt < LATE_TOLD_NS))
        return;
    ebpfMonTextAdd(text, sizeof(text), "IOC %s: %s%s", ioc->name, c->isLate ? "scan late: " : "", c->text);
    if (c->isLate)
        ioc->lateToldAt = now;
    ebpfMonModuleAddEvent(text);
    c->isTold = told;
    w->told++;
}

static int rankRow(const ebpfMonWaitRow *r)
{
    return r->kind[0] == 't' ? 0 : r->kind[0] == 'p' ? 1 : 2;
}

static int compareRows(const void *left, const void *right)
{
    const ebpfMonWaitRow *l = left, *r = right;

    if (rankRow(l) != rankRow(r))
        return rankRow(l) - rankRow(r);
    if (l->seconds != r->seconds)
        return l->seconds < r->seconds ? 1 : -1;
    return strcmp(l->pv, r->pv);
}

static void describeState(ebpfMonWaits *w)
{
    ebpfMonWaitValues *v = &w->values;
    uint64_t records = 0;

    for (unsigned i = 0; i < w->iocs; i++) {
        if (!w->ioc[i].isRead) {
            snprintf(v->state, sizeof(v->state), "IOC %s: its records cannot be read now", w->ioc[i].name);
            return;
        }
        records += w->ioc[i].cat->count;
    }
    snprintf(v->state, sizeof(v->state), "looks at %llu records of %u IOCs, at each every %.0f s",
             (unsigned long long)records, w->iocs, ceil(w->round));
}

static void makeText(ebpfMonWaits *w)
{
    ebpfMonWaitValues *v = &w->values;

    for (unsigned i = 0; i < v->rows; i++) {
        const ebpfMonWaitRow *r = &v->row[i];

        ebpfMonTextAdd(v->text, sizeof(v->text), "%s %s%s%s in %s since %s: %s%s\n", r->kind, r->pv,
                       r->client[0] ? " by " : "", r->client, r->ioc, r->since, rankRow(r) == 1 ? "waits for " : "",
                       r->waits);
    }
    for (unsigned i = 0; i < w->iocs; i++)
        for (unsigned k = 0; k < w->ioc[i].causes; k++)
            if (w->ioc[i].cause[k].waiters[0])
                ebpfMonTextAdd(v->text, sizeof(v->text), "for thread %s in %s wait:\n%s", w->ioc[i].cause[k].name,
                               w->ioc[i].name, w->ioc[i].cause[k].waiters);
}

static void makeValues(ebpfMonWaits *w, uint64_t now)
{
    ebpfMonWaitValues *v = &w->values;
    double cost = v->cost;

    memset(v, 0, sizeof(*v));
    v->cost = cost;
    w->told = 0;
    memset(&w->cause, 0, sizeof(w->cause));
    for (unsigned i = 0; i < w->iocs; i++) {
        ebpfMonIocWaits *ioc = &w->ioc[i];

        for (unsigned k = 0; k < ioc->causes; k++)
            showCause(w, ioc, &ioc->cause[k], now);
        for (size_t k = 0; ioc->isRead && k < ioc->puts; k++)
            showPut(w, ioc, &ioc->put[k], now);
        for (size_t k = 0; ioc->isRead && k < ioc->actives; k++)
            showActive(w, ioc, &ioc->active[k], now);
    }
    qsort(v->row, v->rows, sizeof(v->row[0]), compareRows);
    makeText(w);
    describeState(w);
}

static void publishValues(ebpfMonWaits *w)
{
    if (memcmp(&w->cause, &w->causeShown, sizeof(w->cause)) != 0) {
        ebpfMonPublished *published = ebpfMonPublishedLock();

        memcpy(&w->causeShown, &w->cause, sizeof(w->cause));
        memcpy(published->hangCause, w->cause.hang, sizeof(w->cause.hang));
        memcpy(published->lateCause, w->cause.late, sizeof(w->cause.late));
        ebpfMonPublishedUnlock();
    }
    ebpfMonModuleShowValues(w->module, &w->shown, &w->values, sizeof(w->values));
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

static void countCost(ebpfMonWaits *w, uint64_t cpu)
{
    uint64_t now = ebpfMonClockMonotonic();

    w->cpu += cpu;
    if (now - w->costSince < COST_NS)
        return;
    w->values.cost = floor(1e5 * (double)w->cpu / (double)(now - w->costSince) + 0.5) / 1e3;
    w->cpu = 0;
    w->costSince = now;
}

/* When to look again (s): less often as long as nothing waits. A put ends the pause. */
static double choosePause(ebpfMonWaits *w)
{
    uint64_t now = ebpfMonClockMonotonic();
    size_t waiting = 0;

    for (unsigned i = 0; i < w->iocs; i++)
        waiting += w->ioc[i].actives;
    w->quiet = waiting || w->hangs ? 0 : w->quiet + 1;
    return w->quiet <= QUIET_LOOKS + w->round ? PERIOD : (double)(ebpfMonClockNextLook(now) - now) / 1e9;
}

static void runWaits(ebpfMonWorker *worker, void *arg)
{
    ebpfMonWaits *w = arg;

    w->costSince = ebpfMonClockMonotonic();
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t before = ebpfMonForeignGetCpu(), now;
        double pause;

        takeIocs(w);
        now = ebpfMonClockMonotonic();
        lookAtIocs(w, now);
        readHangs(w);
        for (unsigned i = 0; i < w->iocs; i++)
            updateGraph(w, &w->ioc[i], now);
        makeValues(w, now);
        countCost(w, ebpfMonForeignGetCpu() - before);
        publishValues(w);
        pause = choosePause(w);
        epicsMutexMustLock(w->lock);
        w->isSleeping = pause > PERIOD;
        epicsMutexUnlock(w->lock);
        if (ebpfMonWorkerWait(worker, pause))
            w->quiet = 0;
    }
}

/* As ebpfMonModule.start, stop and put. */
static int beginWaits(void *waits, const ebpfMonModuleCore *core)
{
    ebpfMonWaits *w = waits;

    w->clients = ebpfMonClientsGet("waits");
    if (!w->clients)
        return -1;
    w->core = *core;
    return ebpfMonSharedWorkerSet(&w->worker,
                                  ebpfMonWorkerStart("ebpfMonWaits", epicsThreadPriorityLow, runWaits, w));
}

static int stopWaits(void *waits, double seconds)
{
    ebpfMonWaits *w = waits;

    return ebpfMonSharedWorkerStop(&w->worker, seconds);
}

/* --- PVs, the command, registration ------------------------------------------------------------------------------ */

#define VALUE(member) offsetof(ebpfMonWaitValues, member)
#define ROW(member)   offsetof(ebpfMonWaitRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static ebpfMonWaits *waits;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &waits->shown;
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonWaitValues *v = &waits->shown;

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonWaits.substitutions. */
static ebpfMonPv pvs[] = {
    {"PUT_WAIT_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(puts), .cause = 1 + VALUE(putCause), .light = 1},
    {"DEADLOCK_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(deadlocks), .cause = 1 + VALUE(deadlockCause),
     .light = 2},
    {"ACTIVE_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(actives)},
    {"PUT_WAIT_MAX", 0, getValues, ebpfMonCellDouble, VALUE(putMax)},
    {"ACTIVE_MAX", 0, getValues, ebpfMonCellDouble, VALUE(activeMax)},
    {"WAITS_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"WAITS_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"WAITS_TEXT", 0, getValues, ebpfMonCellLines, VALUE(text)},
    {"WAIT_PVS", 0, getRow, ebpfMonCellText, ROW(pv)},
    {"WAIT_KINDS", 0, getRow, ebpfMonCellText, ROW(kind)},
    {"WAIT_SECONDS", 0, getRow, ebpfMonCellDouble, ROW(seconds)},
    {"WAIT_SINCES", 0, getRow, ebpfMonCellText, ROW(since)},
    {"WAIT_CAUSES", 0, getRow, ebpfMonCellText, ROW(waits)},
    {"WAIT_CLIENTS", 0, getRow, ebpfMonCellText, ROW(client)},
    {"WAIT_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
};

static void wakeModule(void *arg, const epicsTimeStamp *time, const char *text)
{
    wakeWaits(arg);
}

static ebpfMonModule module = {
    .name = "waits", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = beginWaits,
    .stop = stopWaits, .put = addPut, .event = wakeModule,
};

static void listWaits(const iocshArgBuf *args)
{
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonWaitValues *v = &waits->shown;

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n%s", v->state[0] ? v->state : "the monitor does not run", v->text);
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonWaits", listWaits, EBPFMON_NO_ARGS,
     "Lists why threads hang; and what waits for longer than ebpfMonWaitLimit (s): puts with completion, by whom,\n"
     "and for which records; records that are active (PACT), with what should complete them\n"
     "(documentation/use/waits.md).\n"}
};

static void ebpfMonWaitsRegistrar(void)
{
    waits = newWaits(&module);
    ebpfMonShellAddModule(&module, waits, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonWaitsRegistrar);
