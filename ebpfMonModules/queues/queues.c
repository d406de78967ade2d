/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues of the watched IOCs: how full they are, what they lose, who fills them. The thread of the module reads
 * them once a second, less often in a silence. Nothing is attached.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <dbDefs.h>
#include <epicsExport.h>
#include <epicsThread.h>

#include "common/clock.h"
#include "common/worker.h"
#include "ebpfMonModule.h"
#include "host/foreign.h"
#include "queues/queueIoc.h"
#include "queues/unconnected.h"
#include "record/shellCommand.h"
#include "watch/target.h"

#define ROWS    200
#define HOLD_NS 10000000000ull /* a queue is over half, or overflows, for so long after it did */

/* A row of the table QUEUES. */
typedef struct {
    char   ioc[EBPFMON_IOCNAME_SIZE];
    char   queue[16];
    char   state[24];
    double used, size, high, overflows; /* NaN: not known */
    char   fillers[EBPFMON_QUEUE_FILLERS];
} ebpfMonQueueRow;

typedef struct {
    unsigned iocs, queues;
    unsigned half, full;    /* queues that are over half, that overflow */
    uint64_t overflows;     /* since the monitor started, of all */
    double   fill;          /* percent of the fullest queue */
    double   cost;          /* percent of one core */
    char     state[400];
    unsigned rows;
    ebpfMonQueueRow row[ROWS];
} ebpfMonQueueValues;

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

typedef struct {
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
} queueRoom;

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
static queueRoom *newQueues(const ebpfMonModule *module)
{
    queueRoom *d = calloc(1, sizeof(*d));

    if (!d)
        return NULL;
    d->module = module;
    d->period = PERIOD;
    ebpfMonSharedWorkerInit(&d->worker);
    return d;
}

/* --- which IOCs ------------------------------------------------------------------------------------------------- */

static ebpfMonQueueIoc *findIoc(queueRoom *d, uint32_t id)
{
    for (unsigned i = 0; i < d->iocs; i++)
        if (d->ioc[i].id == id)
            return &d->ioc[i];
    return NULL;
}

/* Under the lock of the targets. */
static void takeTarget(queueRoom *d, const ebpfMonTarget *t)
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

static void takeTargets(queueRoom *d)
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
    return at && now - at < HOLD_NS;
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
static void tellQueue(queueRoom *d, const ebpfMonQueueIoc *ioc, unsigned kind, uint64_t now)
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
static int readQueues(queueRoom *d)
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

static void sumQueue(queueRoom *d, const ebpfMonQueueIoc *ioc, unsigned kind, uint64_t now)
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

static void describeState(queueRoom *d, uint64_t now)
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

static void makeValues(queueRoom *d)
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
    for (v->rows = 0; v->rows < d->places && v->rows < ROWS; v->rows++)
        fillRow(&d->place[v->rows], now, &v->row[v->rows]);
    describeState(d, now);
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Sets the cost, and the period that keeps it small: "cpu" ns were used for a look. */
static void countCost(queueRoom *d, uint64_t cpu)
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
static double choosePause(queueRoom *d, int isBusy)
{
    uint64_t now = ebpfMonClockMonotonic();

    d->quiet = isBusy ? 0 : d->quiet + 1;
    return d->quiet <= QUIET_LOOKS ? d->period : (double)(ebpfMonClockNextLook(now) - now) / 1e9;
}

static void runQueues(ebpfMonWorker *worker, void *arg)
{
    queueRoom *d = arg;

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

static int beginQueues(queueRoom *d, const ebpfMonModuleCore *core)
{
    d->core = *core;
    d->startTicks = ebpfMonProcStart(getpid());
    return ebpfMonSharedWorkerSet(&d->worker,
                                  ebpfMonWorkerStart("ebpfMonQueues", epicsThreadPriorityLow, runQueues, d));
}

/* --- PVs, commands, registration --------------------------------------------------------------------------------- */

#define VALUE(member) offsetof(ebpfMonQueueValues, member)
#define ROW(member)   offsetof(ebpfMonQueueRow, member)
#define LOST(member)  offsetof(ebpfMonUnconnectedValues, member)
#define NAME(member)  offsetof(ebpfMonUnconnectedRow, member)

/* One per process, because Base calls registrars and commands without a context. */
static queueRoom *queues;
static ebpfMonUnconnected *unconnected;

static const void *getValues(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : &queues->shown;
}

static const void *getRow(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonQueueValues *v = &queues->shown;

    return index < v->rows ? &v->row[index] : NULL;
}

static const void *getUnconnected(const struct ebpfMonPublished *published, unsigned index)
{
    return index ? NULL : ebpfMonUnconnectedGetValues(unconnected);
}

static const void *getName(const struct ebpfMonPublished *published, unsigned index)
{
    const ebpfMonUnconnectedValues *v = ebpfMonUnconnectedGetValues(unconnected);

    return index < v->rows ? &v->row[index] : NULL;
}

/* In the order of ebpfMonQueues.substitutions. */
static ebpfMonPv pvs[] = {
    {"QUEUE_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(queues)},
    {"QUEUE_HALF_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(half), .cause = 1 + VALUE(state), .light = 1},
    {"QUEUE_FULL_CNT", 0, getValues, ebpfMonCellUnsigned, VALUE(full), .cause = 1 + VALUE(state), .light = 2},
    {"QUEUE_OVERFLOW_CNT", 0, getValues, ebpfMonCellCount, VALUE(overflows)},
    {"QUEUE_FILL_MAX", 0, getValues, ebpfMonCellDouble, VALUE(fill)},
    {"QUEUE_COST", 0, getValues, ebpfMonCellDouble, VALUE(cost)},
    {"QUEUE_MSG", 0, getValues, ebpfMonCellText, VALUE(state)},
    {"QUEUE_IOCS", 0, getRow, ebpfMonCellText, ROW(ioc)},
    {"QUEUE_NAMES", 0, getRow, ebpfMonCellText, ROW(queue)},
    {"QUEUE_STATES", 0, getRow, ebpfMonCellText, ROW(state)},
    {"QUEUE_USEDS", 0, getRow, ebpfMonCellDouble, ROW(used), .gaps = 1},
    {"QUEUE_SIZES", 0, getRow, ebpfMonCellDouble, ROW(size), .gaps = 1},
    {"QUEUE_HIGHS", 0, getRow, ebpfMonCellDouble, ROW(high), .gaps = 1},
    {"QUEUE_OVERFLOW_CNTS", 0, getRow, ebpfMonCellDouble, ROW(overflows), .gaps = 1},
    {"QUEUE_FILLERS", 0, getRow, ebpfMonCellText, ROW(fillers)},
    {"CA_LINK_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(links)},
    {"CA_LINK_UNCONNECTED_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(unconnected)},
    {"UNCONNECTED_FAULT_CNT", 0, getUnconnected, ebpfMonCellUnsigned, LOST(faults), .cause = 1 + LOST(state),
     .light = 1},
    {"UNCONNECTED_COST", 0, getUnconnected, ebpfMonCellDouble, LOST(cost)},
    {"UNCONNECTED_MSG", 0, getUnconnected, ebpfMonCellText, LOST(state)},
    {"UNCONNECTED_PVS", 0, getName, ebpfMonCellText, NAME(pv)},
    {"UNCONNECTED_CLIENTS", 0, getName, ebpfMonCellText, NAME(client)},
    {"UNCONNECTED_TIMES", 0, getName, ebpfMonCellDouble, NAME(seconds)},
    {"UNCONNECTED_REASONS", 0, getName, ebpfMonCellText, NAME(reason)},
};

static int startModule(void *arg, const ebpfMonModuleCore *core)
{
    return beginQueues(queues, core) || ebpfMonUnconnectedBegin(unconnected, core) ? -1 : 0;
}

static int stopModule(void *arg, double seconds)
{
    int isLate = ebpfMonSharedWorkerStop(&queues->worker, seconds);

    return ebpfMonUnconnectedStop(unconnected, seconds) || isLate ? -1 : 0;
}

static void wakeModule(void *arg)
{
    ebpfMonSharedWorkerWake(&queues->worker);
}

static void addMessage(void *arg, const struct ebpfMonWireEvent *message)
{
    if (message)
        ebpfMonUnconnectedAddEvent(unconnected, message);
}

static ebpfMonModule module = {
    .name = "queues", .pvs = pvs, .pvCount = NELEMENTS(pvs), .start = startModule, .stop = stopModule,
    .iocs = wakeModule, .message = addMessage,
};

static void addNumber(ebpfMonTextReport *report, double number)
{
    ebpfMonTextReportAddCell(report, isnan(number) ? "-" : "%.0f", number);
}

static void listQueues(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {
        {"IOC", -16}, {"queue", -8}, {"state", -9}, {"used", 8}, {"size", 8}, {"high water", 10}, {"overflows", 9},
        {"most entries", 0},
    };
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonQueueValues *v = &queues->shown;

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%s\n", v->state[0] ? v->state : "the monitor does not run");
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++) {
        const ebpfMonQueueRow *row = &v->row[i];

        ebpfMonTextReportAddCell(report, "%s", row->ioc);
        ebpfMonTextReportAddCell(report, "%s", row->queue);
        ebpfMonTextReportAddCell(report, "%s", row->state);
        addNumber(report, row->used);
        addNumber(report, row->size);
        addNumber(report, row->high);
        addNumber(report, row->overflows);
        ebpfMonTextReportAddCell(report, "%s", row->fillers);
    }
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static void listUnconnected(const iocshArgBuf *args)
{
    static const ebpfMonReportColumn columns[] = {{"PV", -24}, {"client", -34}, {"s", 8}, {"reason", 0}};
    ebpfMonTextReport *report = ebpfMonTextReportNew();
    const ebpfMonUnconnectedValues *v = ebpfMonUnconnectedGetValues(unconnected);

    ebpfMonModuleLock();
    ebpfMonTextReportAdd(report, "%u CA links of watched IOCs, %u not connected\n", v->links, v->unconnected);
    if (v->rows)
        ebpfMonTextReportBeginTable(report, columns, sizeof(columns) / sizeof(columns[0]));
    for (unsigned i = 0; i < v->rows; i++) {
        ebpfMonTextReportAddCell(report, "%s", v->row[i].pv);
        ebpfMonTextReportAddCell(report, "%s", v->row[i].client);
        ebpfMonTextReportAddCell(report, "%.0f", v->row[i].seconds);
        ebpfMonTextReportAddCell(report, "%s", v->row[i].reason);
    }
    ebpfMonModuleUnlock();
    ebpfMonTextReportPrint(report);
}

static const ebpfMonShellCommand commands[] = {
    {"ebpfMonQueues", listQueues, EBPFMON_NO_ARGS,
     "Lists the queues of the watched IOCs, the worst first: callback queues, scanOnce, the work list of CA links and\n"
     "the messages of errlog. How full they are, how often they overflowed, and which records had the most entries.\n"},
    {"ebpfMonUnconnected", listUnconnected, EBPFMON_NO_ARGS,
     "Lists CA links of watched IOCs that are not connected, and names that programs of this host search in vain,\n"
     "with the reason that packets, sockets and /proc show.\n"}
};

static void ebpfMonQueuesRegistrar(void)
{
    queues = newQueues(&module);
    unconnected = ebpfMonUnconnectedNew(&module);
    ebpfMonShellAddModule(&module, unconnected ? queues : NULL, commands, sizeof(commands) / sizeof(commands[0]));
}

epicsExportRegistrar(ebpfMonQueuesRegistrar);
