/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading many IOCs takes a while, so the collector does not hold the targets lock meanwhile. First it lists the IOCs
 * under the lock. Then it reads /proc, the IOCs' memory and the thread table of the kernel part without the lock. At
 * the end it takes the lock again to look up the names of records.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <epicsAtomic.h>
#include <epicsTime.h>

#include "common/clock.h"
#include "health/cpuMeters.h"
#include "health/delays.h"
#include "health/hangFinder.h"
#include "health/hangs.h"
#include "health/healthCollector.h"
#include "health/lives.h"
#include "health/passRecords.h"
#include "health/recordName.h"
#include "health/rowOrder.h"
#include "health/scanThreads.h"
#include "health/stills.h"
#include "host/procStat.h"
#include "ioc/baseRelease.h"
#include "ioc/caServer.h"
#include "model/published.h"
#include "probe/kernelTables.h"

#define THREADS_MAX 16384
#define CPU_WEIGHT    0.4           /* one reading is coarse: /proc counts in ticks of 10 ms */
#define SERVER_CPU_NS 4500000000ull /* the threads of a CA server are read at every fifth look */

/* What is copied of an IOC under the targets lock. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint64_t start;
    uint64_t clientQ;
    uint64_t scanMenu;
    uint16_t spvt;     /* as in ebpfMonCommon */
    char     name[EBPFMON_HEALTH_NAME];
    int      isRead;   /* its database was read, and "base" is known */
    const ebpfMonBaseRelease *base;
    uint32_t exitCode; /* as in ebpfMonTarget; also hasExit */
    int      hasExit;
    int      gone, watched, timed; /* timed: level chains or trace, at which lock sets are seen */
    uint32_t turn;     /* as in ebpfMonTarget */
    ebpfMonIocHealth *row; /* in health.ioc, NULL: none */
    uint64_t heldRoot;     /* root of the chain that held its lock set longest */
} seenIoc;

struct ebpfMonHealthCollector {
    ebpfMonTargets *targets;
    uint64_t ourStart;           /* start of the monitor's process, as in seenIoc.start */
    seenIoc  ioc[EBPFMON_TARGETS_MAX];
    unsigned iocs;
    ebpfMonSeenThread thread[THREADS_MAX]; /* the threads that scan, hold a lock set, or are in a callback */
    unsigned threads;
    int      isBusy;             /* one of them is in a chain or a callback, or hangs */
    uint64_t threadsAt;          /* when the thread table is read (monotonic ns) */
    ebpfMonCpuMeters   *cpu, *serverCpu; /* by the number of the IOC: the whole process, and its CA server */
    ebpfMonScanThreads *scanThreads;
    ebpfMonPassRecords *passRecords;
    ebpfMonHangFinder  *hangFinder;
    ebpfMonLives       *lives;
    ebpfMonHangs       *hangs;
    ebpfMonStills      *stills;
    ebpfMonLife   life[EBPFMON_TARGETS_MAX];
    ebpfMonHang   found[EBPFMON_HANGS_MAX];
    ebpfMonHealth health;        /* published as a whole */
    int           isAcknowledged; /* atomic; nonzero: forget the IOCs that are gone */
};

ebpfMonHealthCollector *ebpfMonHealthCollectorNew(ebpfMonTargets *targets)
{
    ebpfMonHealthCollector *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->targets = targets;
    c->ourStart = ebpfMonProcStart(getpid());
    c->cpu = ebpfMonCpuMetersNew(EBPFMON_HEALTH_IOCS, CPU_WEIGHT);
    c->serverCpu = ebpfMonCpuMetersNew(EBPFMON_HEALTH_IOCS, 1);
    c->scanThreads = ebpfMonScanThreadsNew();
    c->passRecords = ebpfMonPassRecordsNew(targets, NULL);
    c->hangFinder = ebpfMonHangFinderNew(targets, &ebpfMonHangSourcesHost);
    c->lives = ebpfMonLivesNew();
    c->hangs = ebpfMonHangsNew();
    c->stills = ebpfMonStillsNew();
    if (c->cpu && c->serverCpu && c->scanThreads && c->passRecords && c->hangFinder && c->lives && c->hangs &&
        c->stills)
        return c;
    ebpfMonHealthCollectorFree(c);
    return NULL;
}

void ebpfMonHealthCollectorFree(ebpfMonHealthCollector *c)
{
    if (!c)
        return;
    ebpfMonCpuMetersFree(c->cpu);
    ebpfMonCpuMetersFree(c->serverCpu);
    ebpfMonScanThreadsFree(c->scanThreads);
    ebpfMonPassRecordsFree(c->passRecords);
    ebpfMonHangFinderFree(c->hangFinder);
    ebpfMonLivesFree(c->lives);
    ebpfMonHangsFree(c->hangs);
    ebpfMonStillsFree(c->stills);
    free(c);
}

/* Address of the IOC's menuScan; 0: not known. */
static uint64_t findScanMenu(const ebpfMonTarget *t)
{
    const ebpfMonField *f = t->cat && t->cat->count ?
                            ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[0].rtype, "SCAN") : NULL;

    return f && f->type == ebpfMonDbfMenu ? f->ftPvt : 0;
}

static void listIoc(seenIoc *p, const ebpfMonTarget *t)
{
    *p = (seenIoc){ .id = t->iocId, .pid = t->pid, .start = t->start, .clientQ = t->image.clientQ,
                    .scanMenu = findScanMenu(t), .exitCode = t->exitCode, .hasExit = t->hasExit,
                    .gone = t->gone, .watched = t->level > ebpfMonLevelOff,
                    .timed = t->level >= ebpfMonLevelChains, .turn = t->turn };
    snprintf(p->name, sizeof(p->name), "%s", t->name);
    p->isRead = t->cat != NULL;
    if (t->cat) {
        p->base = t->cat->base;
        p->spvt = t->cat->common.spvt;
    }
}

/* health.ioc may have no room for all. So the IOCs with a database that was read come first: others may be no IOCs. */
static void listIocs(ebpfMonHealthCollector *c)
{
    c->iocs = 0;
    ebpfMonTargetsLock(c->targets);
    for (int pass = 0; pass < 2; pass++)
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(c->targets); t && c->iocs < EBPFMON_TARGETS_MAX; t = t->next)
            if ((t->cat == NULL) == pass)
                listIoc(&c->ioc[c->iocs++], t);
    ebpfMonTargetsUnlock(c->targets);
}

static seenIoc *findIoc(ebpfMonHealthCollector *c, uint32_t tgid)
{
    for (unsigned i = 0; i < c->iocs; i++)
        if ((uint32_t)c->ioc[i].pid == tgid && !c->ioc[i].gone)
            return &c->ioc[i];
    return NULL;
}

/* --- /proc, and the CA server ---------------------------------------------------------------------------------- */

static void raiseTo(double *highest, double value)
{
    if (isnan(*highest) || value > *highest) /* NaN: none yet */
        *highest = value;
}

/* To read the CPU time of some threads takes three system calls for each thread of the process. */
static double readServerCpu(ebpfMonHealthCollector *c, const seenIoc *p)
{
    uint64_t now = ebpfMonClockMonotonic(), at;
    double percent = ebpfMonCpuMetersGet(c->serverCpu, p->id, &at);

    if (!isnan(percent) && now - at < SERVER_CPU_NS)
        return percent;
    return ebpfMonCpuMetersAdd(c->serverCpu, p->id, ebpfMonProcThreadsRun(p->pid, "CAS-"), now);
}

static void readIoc(ebpfMonHealthCollector *c, seenIoc *p, const ebpfMonProcStat *stat)
{
    ebpfMonIocHealth *row = p->row = &c->health.ioc[c->health.iocs++];
    unsigned clients, channels;
    struct ebpfMonQueues queues;

    *row = (ebpfMonIocHealth){ .name = "" };
    snprintf(row->name, sizeof(row->name), "%s", p->name);
    row->cpu = ebpfMonCpuMetersAdd(c->cpu, p->id, stat->cpu, ebpfMonClockMonotonic());
    row->mem = stat->rss / 1e6;
    row->fds = stat->fds;
    row->fdLimit = stat->fdLimit;
    row->threads = stat->threads;
    row->uptime = stat->uptime;
    row->clients = row->channels = -1;
    row->isWatched = p->watched;
    if (!p->watched)
        row->cas = NAN;
    if (!p->timed)
        row->callback[0] = row->callback[1] = row->callback[2] = row->once = row->hold = NAN;
    if (p->isRead && ebpfMonCaServerCount(p->pid, p->clientQ, p->base, &clients, &channels) == 0) {
        row->clients = (int)clients;
        row->channels = (int)channels;
    }
    if (!p->watched)
        return;
    row->cas = readServerCpu(c, p);
    if (p->timed && ebpfMonKernelGetQueues((uint32_t)p->pid, &queues) == 0)
        ebpfMonDelaysSetQueues(&queues, ebpfMonClockMonotonic(), row);
    raiseTo(&c->health.cpuMax, row->cpu);
    raiseTo(&c->health.memMax, row->mem);
    if (row->fdLimit)
        raiseTo(&c->health.fdMax, 100.0 * row->fds / row->fdLimit);
}

static void readIocs(ebpfMonHealthCollector *c)
{
    c->health.iocs = 0;
    c->health.fdMax = 0;
    c->health.cpuMax = c->health.memMax = NAN; /* without an IOC there is no largest one: 0 would be false */
    for (unsigned i = 0; i < c->iocs; i++) {
        seenIoc *p = &c->ioc[i];
        ebpfMonProcStat stat;

        c->life[i] = (ebpfMonLife){ .id = p->id, .pid = p->pid, .gone = p->gone, .watched = p->watched,
                                    .fresh = p->start >= c->ourStart, .exitCode = p->exitCode,
                                    .hasExit = p->hasExit };
        snprintf(c->life[i].name, sizeof(c->life[i].name), "%s", p->name);
        if (p->gone || ebpfMonProcStatGet(p->pid, &stat) || stat.start != p->start)
            continue;
        c->life[i].uptime = stat.uptime;
        c->life[i].state = stat.state;
        if (c->health.iocs < EBPFMON_HEALTH_IOCS)
            readIoc(c, p, &stat);
    }
}

/* --- threads --------------------------------------------------------------------------------------------------- */

static void addThread(void *arg, uint32_t tid, const struct ebpfMonThread *seen)
{
    ebpfMonHealthCollector *c = arg;
    int busy = seen->heldCount || seen->busySince;
    seenIoc *p;

    if (!busy && !seen->scan.period && !seen->holds)
        return;
    p = findIoc(c, seen->tgid);
    if (!p || !p->timed) /* the entry is of a time when the level was higher */
        return;
    if (p->row)
        ebpfMonDelaysAddHold(seen, c->threadsAt, p->row, &p->heldRoot);
    c->isBusy |= busy;
    if ((!busy && !seen->scan.period) || c->threads == THREADS_MAX)
        return;
    c->thread[c->threads] = (ebpfMonSeenThread){ .tid = tid, .seen = *seen };
    ebpfMonHangFinderForgetOldRoot(&c->thread[c->threads].seen, p->turn);
    c->threads++;
}

static void seePasses(ebpfMonHealthCollector *c, uint64_t now)
{
    ebpfMonPassRecordsBegin(c->passRecords);
    for (unsigned i = 0; i < c->threads; i++)
        if (findIoc(c, c->thread[i].seen.tgid))
            ebpfMonPassRecordsSee(c->passRecords, &c->thread[i], now);
    ebpfMonPassRecordsEnd(c->passRecords);
}

static void addScans(ebpfMonHealthCollector *c, uint64_t now)
{
    ebpfMonScanThreadsBegin(c->scanThreads);
    for (unsigned i = 0; i < c->threads; i++) {
        const ebpfMonSeenThread *t = &c->thread[i];
        const seenIoc *p = t->seen.scan.period ? findIoc(c, t->seen.tgid) : NULL;

        if (p)
            ebpfMonScanThreadsAdd(c->scanThreads, &(ebpfMonScanIoc){ p->id, p->pid, p->spvt, p->scanMenu, p->name },
                                  t->tid, &t->seen, now);
    }
    ebpfMonScanThreadsPublish(c->scanThreads, c->targets, &c->health);
    c->isBusy |= ebpfMonScanThreadsAreWaiting(c->scanThreads);
}

static void nameHolders(ebpfMonHealthCollector *c)
{
    c->health.callbackMax = c->health.onceMax = c->health.holdMax = 0;
    c->health.casMax = NAN; /* so is the CPU load, until it was measured over a second */
    ebpfMonTargetsLock(c->targets);
    for (unsigned i = 0; i < c->iocs; i++) {
        ebpfMonIocHealth *row = c->ioc[i].row;

        if (!row || !c->ioc[i].watched)
            continue;
        ebpfMonRecordNameFind(ebpfMonTargetsFindById(c->targets, c->ioc[i].id), c->ioc[i].heldRoot, row->holder,
                              sizeof(row->holder));
        ebpfMonDelaysAddToHighest(row, &c->health);
    }
    ebpfMonTargetsUnlock(c->targets);
}

void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *c)
{
    epicsTimeStamp at;
    ebpfMonPublished *published;
    unsigned hanging;
    uint64_t now;

    listIocs(c);
    readIocs(c);
    c->threads = 0;
    c->isBusy = 0;
    c->threadsAt = ebpfMonClockMonotonic();
    ebpfMonKernelEachThread(addThread, c);
    now = ebpfMonClockMonotonic();
    seePasses(c, now);
    addScans(c, now);
    nameHolders(c);
    hanging = ebpfMonHangFinderFind(c->hangFinder, c->thread, c->threads, now, c->found, &c->health);
    epicsTimeGetCurrent(&at);
    if (epicsAtomicCmpAndSwapIntT(&c->isAcknowledged, 1, 0) == 1)
        ebpfMonLivesAcknowledge(c->lives);
    ebpfMonLivesUpdate(c->lives, c->life, c->iocs, &at, ebpfMonClockSeconds(), &c->health);
    ebpfMonStillsUpdate(c->stills, c->life, c->iocs, &at, ebpfMonClockSeconds(), &c->health);
    c->isBusy |= hanging > 0 || ebpfMonStillsAreWaiting(c->stills);
    ebpfMonHangsUpdate(c->hangs, c->found, hanging, c->lives, &at, &c->health);
    ebpfMonRowOrderSort(&c->health);
    published = ebpfMonPublishedLock();
    published->health = c->health;
    published->time[ebpfMonGroupHealth] = at;
    ebpfMonPublishedUnlock();
}

int ebpfMonHealthCollectorIsBusy(const ebpfMonHealthCollector *c)
{
    return c->isBusy;
}

void ebpfMonHealthCollectorAcknowledge(ebpfMonHealthCollector *c)
{
    epicsAtomicSetIntT(&c->isAcknowledged, 1);
}
