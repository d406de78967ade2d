/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is read of the IOCs is read without the lock of the targets, since that of many takes a while: first a list of
 * the targets is made, then /proc, the IOCs' memory and the kernel's thread table are read, and only names are looked
 * up under the lock again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "model/published.h"
#include "health/delays.h"
#include "health/hangFinder.h"
#include "health/healthCollector.h"
#include "watch/target.h"
#include "probe/loader.h"
#include "ioc/baseOffsets.h"
#include "ioc/caServer.h"
#include "ioc/layout.h"
#include "ioc/procStat.h"

#define SMOOTH      0.4 /* of the last second in the CPU: /proc counts in ticks of 10 ms */
#define MENU_MAX    100
#define THREADS_MAX 4096

/* A target, as far as it is needed without the lock. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint64_t start;
    uint64_t clientQ;
    char     name[EBPFMON_HEALTH_NAME];
    char     version[40];
    int      gone, watched, timed; /* timed: its locks are seen, level chains and above */
    int      row;  /* in health.ioc, -1: none */
    uint64_t held; /* root of the chain that held its lock set longest */
} place;

/* What is kept of one from second to second. */
typedef struct {
    uint32_t id;
    double   cpu, percent;
    uint64_t at;
} usage;

/* A scan thread from second to second. */
typedef struct {
    uint32_t id, tid;
    int      seen;
    uint64_t late;    /* counted in lateCount */
    uint64_t lateAt;  /* ns */
    ebpfMonScanWindow window;
    ebpfMonScanRow row;
} scan;

static place places[EBPFMON_HEALTH_IOCS];
static unsigned placeCount;
static usage used[EBPFMON_HEALTH_IOCS], usedCas[EBPFMON_HEALTH_IOCS]; /* all of it, and its CA server */
static scan scans[EBPFMON_HEALTH_SCANS];
static unsigned scanCount;
static ebpfMonSeenThread threads[THREADS_MAX]; /* those that scan, hold a lock set, or are at a callback */
static unsigned threadCount;
static ebpfMonLives lives;
static ebpfMonHangs hangs;
static ebpfMonHealth health; /* goes to the published as a whole */

static void listTargets(void)
{
    placeCount = 0;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(ebpfMonTheTargets); t && placeCount < EBPFMON_HEALTH_IOCS; t = t->next) {
        place *p = &places[placeCount++];

        *p = (place){ .id = t->iocId, .pid = t->pid, .start = t->start, .clientQ = t->image.clientQ, .gone = t->gone,
                      .watched = t->level > ebpfMonLevelOff, .timed = t->level >= ebpfMonLevelChains };
        snprintf(p->name, sizeof(p->name), "%s", t->name);
        snprintf(p->version, sizeof(p->version), "%s", t->version);
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

static place *placeOfPid(uint32_t tgid)
{
    for (unsigned i = 0; i < placeCount; i++)
        if ((uint32_t)places[i].pid == tgid && !places[i].gone)
            return &places[i];
    return NULL;
}

/* --- /proc, and the CA server ---------------------------------------------------------------------------------- */

/* Percent of one core, from two readings. */
static double cpuOf(usage *table, uint32_t id, double cpu, uint64_t now)
{
    usage *u = NULL, *idle = NULL;

    for (unsigned i = 0; i < EBPFMON_HEALTH_IOCS && !u; i++) {
        if (table[i].id == id)
            u = &table[i];
        else if (!idle || table[i].at < idle->at)
            idle = &table[i]; /* the one that was not asked for longest */
    }
    if (!u) {
        *idle = (usage){ .id = id, .cpu = cpu, .percent = -1, .at = now };
        return 0;
    }
    if (now > u->at) {
        double percent = 100 * (cpu - u->cpu) / ((double)(now - u->at) / 1e9);

        u->percent = u->percent < 0 ? percent : u->percent + SMOOTH * (percent - u->percent);
        if (u->percent < 0.01) /* also when threads ended, and what they had run is missing */
            u->percent = 0;
        u->cpu = cpu;
        u->at = now;
    }
    return u->percent > 0 ? u->percent : 0;
}

static void resources(ebpfMonLife *life)
{
    static uint64_t ours;

    if (!ours)
        ours = ebpfMonProcStart(getpid());
    health.iocs = 0;
    health.cpuMax = health.memMax = health.fdMax = 0;
    for (unsigned i = 0; i < placeCount; i++) {
        place *p = &places[i];
        ebpfMonIocHealth *row = &health.ioc[health.iocs];
        unsigned clients, channels;
        ebpfMonProcStat stat;

        life[i] = (ebpfMonLife){ .id = p->id, .pid = p->pid, .gone = p->gone, .watched = p->watched,
                                 .fresh = p->start >= ours };
        snprintf(life[i].name, sizeof(life[i].name), "%s", p->name);
        p->row = -1;
        if (p->gone || ebpfMonProcStatGet(p->pid, &stat) || stat.start != p->start)
            continue;
        life[i].uptime = stat.uptime;
        *row = (ebpfMonIocHealth){ .name = "" };
        p->row = (int)health.iocs;
        snprintf(row->name, sizeof(row->name), "%s", p->name);
        row->cpu = cpuOf(used, p->id, stat.cpu, ebpfMonClockMonotonic());
        row->mem = stat.rss / 1e6;
        row->fds = stat.fds;
        row->fdLimit = stat.fdLimit;
        row->threads = stat.threads;
        row->uptime = stat.uptime;
        row->clients = row->channels = -1;
        if (ebpfMonCaServerCount(p->pid, p->clientQ, ebpfMonBaseOffsetsOf(p->version), &clients, &channels) == 0) {
            row->clients = (int)clients;
            row->channels = (int)channels;
        }
        health.iocs++;
        if (!p->watched)
            continue;
        row->cas = cpuOf(usedCas, p->id, ebpfMonProcThreadsRun(p->pid, "CAS-"), ebpfMonClockMonotonic());
        if (p->timed)
            ebpfMonDelaysQueues((uint32_t)p->pid, ebpfMonClockMonotonic(), row);
        if (row->cpu > health.cpuMax)
            health.cpuMax = row->cpu;
        if (row->mem > health.memMax)
            health.memMax = row->mem;
        if (row->fdLimit && 100.0 * row->fds / row->fdLimit > health.fdMax)
            health.fdMax = 100.0 * row->fds / row->fdLimit;
    }
}

/* --- threads --------------------------------------------------------------------------------------------------- */

static void eachThread(void *arg, uint32_t tid, const struct ebpfMonThread *seen)
{
    int busy = seen->heldCount || seen->busySince;
    place *p;

    if (!busy && !seen->scan.period && !seen->holds)
        return;
    p = placeOfPid(seen->tgid);
    if (!p || !p->timed) /* what was noted when its level was higher is stale */
        return;
    if (p->row >= 0)
        ebpfMonDelaysHold(seen, *(const uint64_t *)arg, &health.ioc[p->row], &p->held);
    if ((!busy && !seen->scan.period) || threadCount == THREADS_MAX)
        return;
    threads[threadCount].tid = tid;
    threads[threadCount++].seen = *seen;
}

/* Under the lock of the targets. */
static void recordName(uint32_t id, uint64_t precord, char *buf, size_t size)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(ebpfMonTheTargets, id);
    long index = t && t->cat ? ebpfMonCatalogueFindAddr(t->cat, precord) : -1;

    if (index >= 0)
        snprintf(buf, size, "%s", ebpfMonCatalogueName(t->cat, (uint32_t)index));
    else
        buf[0] = 0;
}

/* The choice of menuScan that has this period. Under the lock of the targets. */
static void scanName(uint32_t id, double period, char *buf, size_t size)
{
    ebpfMonTarget *t = ebpfMonTargetsFindById(ebpfMonTheTargets, id);
    const ebpfMonField *f = t && t->cat && t->cat->count ?
                            ebpfMonCatalogueFieldNamed(t->cat, t->cat->rec[0].rtype, "SCAN") : NULL;
    struct layoutMenu menu;

    snprintf(buf, size, "%g second", period);
    if (!f || f->type != ebpfMonDbfMenu || ebpfMonMemReadNow(t->pid, f->ftPvt, &menu, sizeof(menu)))
        return;
    for (int32_t i = 0; i < menu.nChoice && i < MENU_MAX; i++) {
        char text[40];
        uint64_t at;
        double value;

        if (ebpfMonMemReadNow(t->pid, menu.papChoiceValue + 8 * (uint64_t)i, &at, sizeof(at)) ||
            ebpfMonMemReadNow(t->pid, at, text, sizeof(text)))
            return;
        text[sizeof(text) - 1] = 0;
        value = ebpfMonScanPeriod(text);
        if (value > 0.999 * period && value < 1.001 * period) { /* the thread's name has six digits of it */
            snprintf(buf, size, "%s", text);
            return;
        }
    }
}

/* Under the lock of the targets. */
static void holders(void)
{
    health.callbackMax = health.onceMax = health.holdMax = health.casMax = 0;
    for (unsigned i = 0; i < placeCount; i++) {
        ebpfMonIocHealth *row = places[i].row >= 0 ? &health.ioc[places[i].row] : NULL;

        if (!row || !places[i].watched)
            continue;
        recordName(places[i].id, places[i].held, row->holder, sizeof(row->holder));
        ebpfMonDelaysMost(row, &health);
    }
}

static scan *scanOf(uint32_t id, uint32_t tid, double period)
{
    scan *s;

    for (unsigned i = 0; i < scanCount; i++)
        if (scans[i].id == id && scans[i].tid == tid)
            return &scans[i];
    if (scanCount == EBPFMON_HEALTH_SCANS)
        return NULL;
    s = &scans[scanCount++];
    *s = (scan){ .id = id, .tid = tid };
    s->row.period = period;
    scanName(id, period, s->row.name, sizeof(s->row.name));
    return s;
}

static void watchScan(const place *p, uint32_t tid, const struct ebpfMonThread *seen, uint64_t now)
{
    const struct ebpfMonScan *k = &seen->scan;
    ebpfMonScanSample sample = { k->passes, k->sum, k->max, k->busy, k->late };
    uint64_t present = now > k->begin ? now - k->begin : 0, topRoot = k->topRoot;
    scan *s;

    /* nothing to scan any more: as the kernel half has it (scanBegins) */
    if (!seen->heldCount && now > k->end && now - k->end > 4 * k->period + 1000000000u)
        return;
    s = scanOf(p->id, tid, (double)k->period / 1e9);
    if (!s)
        return;
    s->seen = 1;
    snprintf(s->row.ioc, sizeof(s->row.ioc), "%s", p->name);
    ebpfMonScanAdd(&s->window, &sample, seen->heldCount && present > k->period + k->period / 2 ? present : 0, &s->row);
    if (k->late > s->late) {
        health.lateCount += k->late - s->late;
        s->lateAt = now;
    }
    s->late = k->late;
    if (s->lateAt && now - s->lateAt < EBPFMON_SCAN_SECONDS * 1000000000ull)
        topRoot = k->lateTopRoot;
    if (seen->heldCount && now > seen->held[0].begin && now - seen->held[0].begin > k->period)
        topRoot = seen->held[0].root; /* it is still at it */
    recordName(p->id, topRoot, s->row.topRoot, sizeof(s->row.topRoot));
}

/* By IOC, the fastest first. */
static int byIoc(const void *a, const void *b)
{
    const scan *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->tid < y->tid ? 1 : x->tid > y->tid ? -1 : 0; /* Base starts them from the slowest on */
}

static void scanThreads(uint64_t now)
{
    unsigned i, n = 0;

    for (i = 0; i < scanCount; i++)
        scans[i].seen = 0;
    for (i = 0; i < threadCount; i++) {
        const place *p = placeOfPid(threads[i].seen.tgid);

        if (p && threads[i].seen.scan.period && threads[i].seen.scan.begin)
            watchScan(p, threads[i].tid, &threads[i].seen, now);
    }
    for (i = 0; i < scanCount; i++)
        if (scans[i].seen)
            scans[n++] = scans[i];
    scanCount = n;
    qsort(scans, scanCount, sizeof(scans[0]), byIoc);
    for (i = 0; i < scanCount; i++)
        health.scan[i] = scans[i].row;
    health.scans = scanCount;
}

void ebpfMonHealthCollect(void)
{
    static ebpfMonLife life[EBPFMON_HEALTH_IOCS];
    static ebpfMonHang found[EBPFMON_HEALTH_HANGS];
    epicsTimeStamp at;
    ebpfMonPublished *published;
    unsigned hanging;
    uint64_t now;

    listTargets();
    resources(life);
    threadCount = 0;
    now = ebpfMonClockMonotonic();
    ebpfMonKernelEachThread(eachThread, &now);
    now = ebpfMonClockMonotonic();
    ebpfMonTargetsLock(ebpfMonTheTargets);
    scanThreads(now);
    holders();
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    hanging = ebpfMonHangsFind(threads, threadCount, now, found, &health);
    epicsTimeGetCurrent(&at);
    ebpfMonLivesUpdate(&lives, life, placeCount, &at, &health);
    ebpfMonHangsUpdate(&hangs, found, hanging, &lives, &at, &health);
    published = ebpfMonPublishedLock();
    published->health = health;
    published->time[ebpfMonGroupHealth] = at;
    ebpfMonPublishedUnlock();
}
