/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "host/foreign.h"
#include "queues/queues.h"
#include "watch/target.h"

#define PERIOD      1.0  /* s */
#define QUIET_LOOKS 3    /* in which nothing moved: then it is silent */
#define COST_MOST   0.005 /* cores */
#define COST_NS     (10 * EBPFMON_SECOND_NS) /* the cost is a mean over this time */
#define TOLD_MAX    5    /* events of one look */
#define IOCS_MAX    256

/* A place in the table. */
typedef struct {
    double badness;
    const ebpfMonQueueIoc *ioc;
    unsigned kind;
} rowPlace;

struct ebpfMonQueueRoom {
    const ebpfMonModule *module;
    ebpfMonSharedWorker worker;
    ebpfMonModuleCore core;
    uint64_t startTicks;    /* clock ticks since boot, as ebpfMonTarget.start */
    /* the thread's own: it reads the memory of IOCs, which may not answer, so it holds no lock */
    ebpfMonQueueIoc ioc[IOCS_MAX];
    unsigned iocs;
    unsigned told;          /* events of this look */
    uint64_t searchCpu;     /* ns of this look that each IOC needs only once */
    uint64_t cpu, costSince; /* ns of CPU time since then */
    unsigned quiet;
    double   period;
    rowPlace place[IOCS_MAX * ebpfMonQueueCount];
    unsigned places;
    ebpfMonQueueValues values;
    ebpfMonQueueValues shown; /* under the lock of the published values */
};

ebpfMonQueueRoom *ebpfMonQueueRoomNew(const ebpfMonModule *module)
{
    ebpfMonQueueRoom *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->module = module;
    d->period = PERIOD;
    ebpfMonSharedWorkerInit(&d->worker);
    return d;
}

const ebpfMonQueueValues *ebpfMonQueueRoomGetValues(const ebpfMonQueueRoom *d)
{
    return &d->shown;
}

/* --- which IOCs ------------------------------------------------------------------------------------------------- */

static ebpfMonQueueIoc *findIoc(ebpfMonQueueRoom *d, uint32_t id)
{
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].id == id)
            return &d->ioc[i];
    return NULL;
}

/* Under the lock of the targets. */
static void takeTarget(ebpfMonQueueRoom *d, const ebpfMonTarget *t)
{
    ebpfMonQueueIoc *ioc = findIoc(d, t->iocId);

    if (!ioc && d->iocs == IOCS_MAX)
        return;
    if (!ioc) {
        ioc = &d->ioc[d->iocs++];
        *ioc = (ebpfMonQueueIoc){ .id = t->iocId, .pid = t->pid, .user = t->user,
                                  .isNew = t->start > d->startTicks };
    }
    snprintf(ioc->name, sizeof(ioc->name), "%s", t->name);
    ioc->isSeen = 1;
    if (ioc->cat == t->cat)
        return;
    ebpfMonCatalogueRelease(ioc->cat);
    ioc->cat = ebpfMonCatalogueHold(t->cat);
}

static void takeTargets(ebpfMonQueueRoom *d)
{
    unsigned kept = 0;

    ebpfMonTargetsLock(d->core.targets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(d->core.targets); t; t = t->next)
        if (!t->gone && t->running && t->cat && t->level > ebpfMonLevelOff)
            takeTarget(d, t);
    ebpfMonTargetsUnlock(d->core.targets);
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].isSeen) {
            d->ioc[kept] = d->ioc[i];
            d->ioc[kept++].isSeen = 0;
        } else {
            ebpfMonCatalogueRelease(d->ioc[i].cat);
        }
    d->iocs = kept;
}

/* --- a look ----------------------------------------------------------------------------------------------------- */

static int isLately(uint64_t at, uint64_t now)
{
    return at && now - at < EBPFMON_QUEUE_HOLD_NS;
}

static const char *getUnit(unsigned kind)
{
    return kind == ebpfMonQueueLog ? "bytes" : "entries";
}

/* One sentence: what is wrong, and who it is. */
static void describeQueue(const ebpfMonQueueIoc *ioc, unsigned kind, uint64_t now, char *text, size_t size)
{
    const ebpfMonQueue *q = &ioc->queue[kind];
    char count[60] = "", who[EBPFMON_QUEUE_FILLERS + 20] = "";

    if (q->fillers[0])
        snprintf(who, sizeof(who), "; entries: %s", q->fillers);
    if (isLately(q->overflowAt, now)) {
        if (kind == ebpfMonQueueLog)
            snprintf(count, sizeof(count), ", at least %.0f messages lost", q->overflows);
        else
            snprintf(count, sizeof(count), ", %.0f times since the IOC started", q->overflows);
        snprintf(text, size, "IOC %s: queue %s overflowed%s%s", ioc->name, ebpfMonQueueNames[kind], count, who);
    } else if (q->used > q->size / 2) {
        snprintf(text, size, "IOC %s: queue %s has %.0f of %.0f %s%s", ioc->name, ebpfMonQueueNames[kind], q->used,
                 q->size, getUnit(kind), who);
    } else {
        snprintf(text, size, "IOC %s: queue %s had up to %.0f of %.0f %s%s", ioc->name, ebpfMonQueueNames[kind],
                 q->high, q->size, getUnit(kind), who);
    }
}

/* An event: a queue overflowed; it is over half, or no more. */
static void tellQueue(ebpfMonQueueRoom *d, const ebpfMonQueueIoc *ioc, unsigned kind, uint64_t now)
{
    ebpfMonQueue *q = (ebpfMonQueue *)&ioc->queue[kind];
    int isHalf = isLately(q->halfAt, now) || isLately(q->overflowAt, now);
    char text[EBPFMON_MODULE_EVENT];

    if (q->lately == 0 && isHalf == q->isTold)
        return;
    if (d->told++ >= TOLD_MAX)
        return;
    if (isHalf)
        describeQueue(ioc, kind, now, text, sizeof(text));
    else
        snprintf(text, sizeof(text), "IOC %s: queue %s is less than half full again", ioc->name,
                 ebpfMonQueueNames[kind]);
    q->isTold = isHalf;
    ebpfMonModuleAddEvent(text);
}

/* Reads everything. Nonzero: something moves, or is told. */
static int readQueues(ebpfMonQueueRoom *d)
{
    uint64_t now;
    int isBusy = 0;

    takeTargets(d);
    now = ebpfMonClockMonotonic();
    d->told = 0;
    d->searchCpu = 0;
    for (unsigned i = 0; i < d->iocs; i++) {
        ebpfMonQueueIoc *ioc = &d->ioc[i];

        ebpfMonQueueIocUpdate(ioc, now);
        d->searchCpu += ioc->searchCpu;
        isBusy |= ioc->hasMoved;
        for (unsigned k = 0; ioc->isRead && k < ebpfMonQueueCount; k++) {
            d->values.overflows += ioc->queue[k].lately;
            tellQueue(d, ioc, k, now);
            isBusy |= ioc->queue[k].isTold;
        }
    }
    return isBusy;
}

/* --- what is published ------------------------------------------------------------------------------------------ */

static int comparePlaces(const void *left, const void *right)
{
    const rowPlace *l = left, *r = right;

    if (l->badness != r->badness)
        return l->badness < r->badness ? 1 : -1;
    return l->ioc != r->ioc ? (l->ioc > r->ioc) - (l->ioc < r->ioc) : (l->kind > r->kind) - (l->kind < r->kind);
}

static void sumQueue(ebpfMonQueueRoom *d, const ebpfMonQueueIoc *ioc, unsigned kind, uint64_t now)
{
    const ebpfMonQueue *q = &ioc->queue[kind];
    ebpfMonQueueValues *v = &d->values;
    int isFull = isLately(q->overflowAt, now), isHalf = isLately(q->halfAt, now);
    double fill = isnan(q->used / q->size) ? 0 : floor(100 * q->used / q->size + 0.5);

    v->queues++;
    v->full += isFull != 0;
    v->half += isHalf != 0;
    if (fill > v->fill)
        v->fill = fill;
    d->place[d->places++] = (rowPlace){ 1e4 * isFull + 1e3 * isHalf + fill + (q->overflows > 0), ioc, kind };
}

static void fillRow(const rowPlace *place, uint64_t now, ebpfMonQueueRow *row)
{
    const ebpfMonQueue *q = &place->ioc->queue[place->kind];

    snprintf(row->ioc, sizeof(row->ioc), "%s", place->ioc->name);
    snprintf(row->queue, sizeof(row->queue), "%s", ebpfMonQueueNames[place->kind]);
    snprintf(row->state, sizeof(row->state), "%s", isLately(q->overflowAt, now) ? "overflows" :
                                                   isLately(q->halfAt, now) ? "over half" : "ok");
    snprintf(row->fillers, sizeof(row->fillers), "%s", q->fillers);
    row->used = q->used;
    row->size = q->size;
    row->high = q->high;
    row->overflows = q->overflows;
}

static void describeState(ebpfMonQueueRoom *d, uint64_t now)
{
    ebpfMonQueueValues *v = &d->values;
    char more[40] = "";

    if (v->full || v->half) {
        describeQueue(d->place[0].ioc, d->place[0].kind, now, v->state, sizeof(v->state));
        return;
    }
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].why[0]) {
            snprintf(v->state, sizeof(v->state), "IOC %s: not known: %s", d->ioc[i].name, d->ioc[i].why);
            return;
        }
    if (d->period > 1.2 * PERIOD)
        snprintf(more, sizeof(more), ", every %.1f s", d->period);
    snprintf(v->state, sizeof(v->state), "reads %u queues in %u IOCs%s", v->queues, v->iocs, more);
}

static void makeValues(ebpfMonQueueRoom *d)
{
    uint64_t now = ebpfMonClockMonotonic();
    ebpfMonQueueValues *v = &d->values;

    v->iocs = v->queues = v->half = v->full = 0;
    v->fill = 0;
    memset(v->row, 0, sizeof(v->row));
    memset(v->state, 0, sizeof(v->state));
    d->places = 0;
    for (unsigned i = 0; i < d->iocs; i++) {
        v->iocs += d->ioc[i].isRead;
        for (unsigned k = 0; d->ioc[i].isRead && k < ebpfMonQueueCount; k++)
            if (d->ioc[i].queue[k].isKnown)
                sumQueue(d, &d->ioc[i], k, now);
    }
    qsort(d->place, d->places, sizeof(d->place[0]), comparePlaces);
    for (v->rows = 0; v->rows < d->places && v->rows < EBPFMON_QUEUE_ROWS; v->rows++)
        fillRow(&d->place[v->rows], now, &v->row[v->rows]);
    describeState(d, now);
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Sets the cost, and the period that keeps it small: "cpu" ns were used for a look. */
static void countCost(ebpfMonQueueRoom *d, uint64_t cpu)
{
    uint64_t now = ebpfMonClockMonotonic();
    double needed = (double)(cpu - d->searchCpu) / 1e9 / COST_MOST;

    d->period = needed > PERIOD ? (needed + d->period) / 2 : PERIOD;
    d->cpu += cpu;
    if (now - d->costSince < COST_NS)
        return;
    d->values.cost = floor(1e5 * (double)d->cpu / (double)(now - d->costSince) + 0.5) / 1e3;
    d->cpu = 0;
    d->costSince = now;
}

/* When to look again (s): less often as long as nothing moves. */
static double choosePause(ebpfMonQueueRoom *d, int isBusy)
{
    uint64_t now = ebpfMonClockMonotonic();

    d->quiet = isBusy ? 0 : d->quiet + 1;
    return d->quiet <= QUIET_LOOKS ? d->period : (double)(ebpfMonClockNextLook(now) - now) / 1e9;
}

static void runQueues(ebpfMonWorker *worker, void *arg)
{
    ebpfMonQueueRoom *d = arg;

    d->costSince = ebpfMonClockMonotonic();
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t before = ebpfMonForeignGetCpu();
        double begin = ebpfMonClockSeconds();
        int isBusy = readQueues(d);

        makeValues(d);
        countCost(d, ebpfMonForeignGetCpu() - before);
        ebpfMonModuleShowValues(d->module, &d->shown, &d->values, sizeof(d->values));
        ebpfMonWorkerWait(worker, choosePause(d, isBusy));
        if (ebpfMonClockSeconds() < begin + d->period) /* woken, because IOCs came or went */
            ebpfMonWorkerWait(worker, begin + d->period - ebpfMonClockSeconds());
    }
}

int ebpfMonQueueRoomBegin(ebpfMonQueueRoom *d, const ebpfMonModuleCore *core)
{
    d->core = *core;
    d->startTicks = ebpfMonProcStart(getpid());
    return ebpfMonSharedWorkerSet(&d->worker,
                                  ebpfMonWorkerStart("ebpfMonQueues", epicsThreadPriorityLow, runQueues, d));
}

int ebpfMonQueueRoomStop(ebpfMonQueueRoom *d, double seconds)
{
    return ebpfMonSharedWorkerStop(&d->worker, seconds);
}

void ebpfMonQueueRoomWake(ebpfMonQueueRoom *d)
{
    ebpfMonSharedWorkerWake(&d->worker);
}
