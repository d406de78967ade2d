/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <epicsAtomic.h>
#include <epicsTime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "health/healthCollector.h"
#include "health/lives.h"
#include "health/scanThreads.h"
#include "host/memory.h"
#include "host/procStat.h"
#include "ioc/baseLayout.h"
#include "ioc/caServer.h"
#include "model/published.h"
#include "module/modules.h"
#include "probe/hist.h"
#include "probe/kernelTables.h"
#include "watch/target.h"

/* --- records of passes --- */

#define PASSES_MAX 4096 /* of which not one is forgotten: else a long one would be a hang */
#define LOOK_NS (EBPFMON_SECOND_NS / 2) /* a pass this old is looked at: most are shorter, and cost nothing */

typedef struct {
    uint32_t tgid, tid;
    uint64_t begin;  /* of the pass (monotonic ns); the three together identify it */
    uint64_t record; /* the one that the last look found; 0: none */
    uint64_t since;  /* the first look that found it; before the first record the begin of the pass (monotonic ns) */
    uint64_t before; /* the last look that did not (monotonic ns) */
    uint64_t looked; /* the last look that could read the stack (monotonic ns) */
    int      isSeen; /* in this look */
} passOfThread;

struct ebpfMonPassRecords {
    ebpfMonTargets        *targets;
    ebpfMonPassRecordsRead read;
    unsigned               count;
    passOfThread           pass[PASSES_MAX];
};

static int readStackBelow(pid_t pid, uint64_t sp, uint64_t word[EBPFMON_PASS_STACK])
{
    size_t size = EBPFMON_PASS_STACK * sizeof(*word);

    return ebpfMonMemReadNow(pid, sp - size, word, size);
}

ebpfMonPassRecords *ebpfMonPassRecordsNew(ebpfMonTargets *targets, ebpfMonPassRecordsRead read)
{
    ebpfMonPassRecords *records = calloc(1, sizeof(*records));

    if (!records)
        return NULL;
    records->targets = targets;
    records->read = read ? read : readStackBelow;
    return records;
}

void ebpfMonPassRecordsFree(ebpfMonPassRecords *records)
{
    free(records);
}

void ebpfMonPassRecordsBegin(ebpfMonPassRecords *records)
{
    for (unsigned i = 0; i < records->count; i++)
        records->pass[i].isSeen = 0;
}

void ebpfMonPassRecordsEnd(ebpfMonPassRecords *records)
{
    unsigned n = 0;

    for (unsigned i = 0; i < records->count; i++)
        if (records->pass[i].isSeen)
            records->pass[n++] = records->pass[i];
    records->count = n;
}

/* Finds the pass, or adds it. NULL: there are too many. */
static passOfThread *findPass(ebpfMonPassRecords *records, const ebpfMonSeenThread *thread)
{
    uint64_t begin = thread->seen.held[0].begin;

    for (unsigned i = 0; i < records->count; i++) {
        passOfThread *p = &records->pass[i];

        if (p->tgid == thread->seen.tgid && p->tid == thread->tid && p->begin == begin)
            return p;
    }
    if (records->count == PASSES_MAX)
        return NULL;
    records->pass[records->count] = (passOfThread){ .tgid = thread->seen.tgid, .tid = thread->tid, .begin = begin,
                                                    .since = begin, .before = begin, .looked = begin };
    return &records->pass[records->count++];
}

/* The record at which the list is; 0: there is none on the stack. As ebpfmon_find_root of the kernel part does it
 * (passRoot.bpf.c); while the thread waits in dbScanLock() it may be the one before. Returns 0; -1: the stack cannot be
 * read. */
static int findListRecord(const ebpfMonPassRecords *records, const struct ebpfMonThread *t, uint64_t *record)
{
    uint64_t word[EBPFMON_PASS_STACK];
    const ebpfMonTarget *target;

    *record = 0;
    if (records->read((pid_t)t->tgid, t->held[0].sp, word))
        return -1;
    ebpfMonTargetsLock(records->targets);
    target = ebpfMonTargetsFindByPid(records->targets, (pid_t)t->tgid);
    for (int i = EBPFMON_PASS_STACK - 1; i >= 0 && !*record && target && target->cat; i--)
        if (word[i] && ebpfMonCatalogueFindAddr(target->cat, word[i]) >= 0)
            *record = word[i];
    ebpfMonTargetsUnlock(records->targets);
    return 0;
}

static void noteRecord(passOfThread *p, uint64_t record, uint64_t now)
{
    if (record != p->record) {
        p->record = record;
        p->since = now;
        p->before = p->looked;
    }
    p->looked = now;
}

void ebpfMonPassRecordsSee(ebpfMonPassRecords *records, ebpfMonSeenThread *thread, uint64_t now)
{
    struct ebpfMonHeld *h = &thread->seen.held[0];
    uint64_t record;
    passOfThread *p;

    if (!thread->seen.heldCount || !h->sp || h->root || now < h->begin + LOOK_NS || !(p = findPass(records, thread)))
        return;
    p->isSeen = 1;
    if (findListRecord(records, &thread->seen, &record) == 0)
        noteRecord(p, record, now);
    h->root = p->record;
    h->begin = p->since;
    thread->doubt = p->since - p->before;
}

/* --- threads that do not run ---
 *
 * Finds IOCs that stand still: a signal or a debugger stopped the process, its container is paused, the kernel does not
 * let it go on, or somebody typed iocPause. No probe tells. Publishing thread only. */

typedef struct {
    uint32_t id;    /* of the IOC */
    double   since; /* the first look that found it so (s, monotonic) */
    int      told;  /* an event has told it */
} stillIoc;

typedef struct {
    unsigned n;
    stillIoc known[EBPFMON_TARGETS_MAX];
} stillIocs;

enum { paused = 1, frozen }; /* no states of proc(5) */

/* Why the IOC stands still; NULL: it does not (proc(5), state). */
static const char *findReason(const ebpfMonLife *l)
{
    if (l->gone || !l->watched)
        return NULL;
    return l->state == paused ? "paused (iocPause)" : l->state == frozen ? "its container is paused" :
           l->state == 'T' ? "stopped by a signal" : l->state == 't' ? "stopped by a debugger" :
           l->state == 'D' ? "waits in the kernel" : NULL;
}

static unsigned findStill(const stillIocs *stills, uint32_t id)
{
    unsigned i;

    for (i = 0; i < stills->n && stills->known[i].id != id; i++)
        ;
    return i;
}

static int isTold(const stillIocs *stills, uint32_t id)
{
    unsigned i = findStill(stills, id);

    return i < stills->n && stills->known[i].told;
}

static void addStill(stillIocs *stills, const ebpfMonLife *l, const char *reason, const epicsTimeStamp *at,
                     double seconds, ebpfMonHealth *health)
{
    unsigned i = findStill(stills, l->id);
    stillIoc *s = &stills->known[i];
    char text[EBPFMON_HEALTH_TEXT];

    if (i == EBPFMON_TARGETS_MAX)
        return;
    if (i == stills->n) {
        *s = (stillIoc){ .id = l->id, .since = seconds };
        stills->n++;
    }
    if (ebpfMonHangLimit <= 0 || seconds - s->since < ebpfMonHangLimit)
        return;
    if (!s->told)
        ebpfMonHealthEventsAdd(health, at, 1, "IOC %s (pid %d) stands still since %.0f s (%s)", l->name, (int)l->pid,
                               seconds - s->since, reason);
    s->told = 1;
    snprintf(text, sizeof(text), "stands still: %s", reason);
    ebpfMonHealthAddIll(health, l->id, MAJOR_ALARM, text);
    if (!health->still++)
        snprintf(health->stillText, sizeof(health->stillText), "%s %.120s", l->name, text);
}

/* "now": the IOCs of this second, "n" of them; "at": the time for events; "seconds": the monotonic time. An IOC that
 * is paused or frozen, or whose first thread is stopped or in uninterruptible sleep, at each look for ebpfMonHangLimit
 * is an event. Sets health->still and its text. */
static void updateStills(stillIocs *stills, const ebpfMonLife *now, unsigned n, const epicsTimeStamp *at,
                         double seconds, ebpfMonHealth *health)
{
    unsigned kept = 0;

    health->still = 0;
    health->stillText[0] = 0;
    for (unsigned i = 0; i < stills->n; i++) {
        const stillIoc *s = &stills->known[i];
        unsigned k;

        for (k = 0; k < n && now[k].id != s->id; k++)
            ;
        if (k < n && findReason(&now[k]))
            stills->known[kept++] = *s;
        /* if it has ended, another event tells this; one that is not watched any more may still stand */
        else if (k < n && !now[k].gone && now[k].watched && s->told)
            ebpfMonHealthEventsAdd(health, at, 0, "IOC %s (pid %d) goes on; it stood still for %.0f s", now[k].name,
                                   (int)now[k].pid, seconds - s->since);
    }
    stills->n = kept;
    for (unsigned k = 0; k < n; k++) {
        const char *reason = findReason(&now[k]);

        if (reason)
            addStill(stills, &now[k], reason, at, seconds, health);
    }
}

/* --- CPU use --- */

typedef struct {
    uint32_t id;      /* 0: free */
    double   cpu, percent; /* percent < 0: not known yet */
    uint64_t at;
} cpuMeter;

struct ebpfMonCpuMeters {
    unsigned size;
    double   weight;
    cpuMeter meter[];
};

ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size, double weight)
{
    ebpfMonCpuMeters *meters = calloc(1, sizeof(*meters) + size * sizeof(meters->meter[0]));

    if (!meters)
        return NULL;
    meters->size = size;
    meters->weight = weight;
    return meters;
}

void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters)
{
    free(meters);
}

static double getPercent(const cpuMeter *m)
{
    return m->percent < 0 ? NAN : m->percent;
}

double ebpfMonCpuMetersGet(const ebpfMonCpuMeters *meters, uint32_t id, uint64_t *at)
{
    *at = 0;
    for (unsigned i = 0; i < meters->size; i++)
        if (meters->meter[i].id == id) {
            *at = meters->meter[i].at;
            return getPercent(&meters->meter[i]);
        }
    return NAN;
}

double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now)
{
    cpuMeter *m = NULL, *idle = NULL;

    for (unsigned i = 0; i < meters->size && !m; i++) {
        if (meters->meter[i].id == id)
            m = &meters->meter[i];
        else if (!idle || meters->meter[i].at < idle->at)
            idle = &meters->meter[i];
    }
    if (!m) {
        *idle = (cpuMeter){ .id = id, .cpu = cpu, .percent = -1, .at = now };
        return NAN;
    }
    if (now > m->at) {
        double percent = 100 * (cpu - m->cpu) / ((double)(now - m->at) / 1e9);

        if (percent < 0) /* threads have ended, and their time is missing in "cpu" */
            percent = m->percent < 0 ? 0 : m->percent;
        m->percent = m->percent < 0 ? percent : m->percent + meters->weight * (percent - m->percent);
        if (m->percent < 0.01)
            m->percent = 0;
        m->cpu = cpu;
        m->at = now;
    }
    return getPercent(m);
}

/* --- delays --- */

void ebpfMonDelaysSetQueues(const struct ebpfMonQueues *queues, uint64_t now, ebpfMonIocHealth *row)
{
    uint64_t who;

    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        row->callback[i] = ebpfMonHistFindRecent(&queues->q[i].wait, now, &who);
    row->once = ebpfMonHistFindRecent(&queues->q[EBPFMON_QUEUE_ONCE].wait, now, &who);
}

void ebpfMonDelaysAddHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root)
{
    uint64_t who;
    double held = ebpfMonHistFindRecent(&seen->hold, now, &who);

    if (held > row->hold) {
        row->hold = held;
        *root = who;
    }
}

static void raiseTo(double *highest, double value)
{
    if (isnan(*highest) || value > *highest) /* NaN: none yet */
        *highest = value;
}

static void raiseHighest(ebpfMonHighest *highest, double value, const char *ioc, const char *record)
{
    if (value > highest->value) {
        highest->value = value;
        snprintf(highest->cause, sizeof(highest->cause), "%s%s%s", ioc, record[0] ? ": " : "", record);
    }
}

void ebpfMonDelaysAddToHighest(const ebpfMonIocHealth *row, ebpfMonHealth *health)
{
    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        raiseHighest(&health->callbackMax, row->callback[i], row->name, "");
    raiseHighest(&health->onceMax, row->once, row->name, "");
    raiseHighest(&health->holdMax, row->hold, row->name, row->holder);
    raiseTo(&health->casMax, row->cas);
}

/* --- the order of rows --- */

#define DELAY_LIMIT 1000.0 /* ms; the default of the macro IOC_CALLBACK_WAIT_MAX_HIGH */
#define FILE_LIMIT  80.0   /* %; the default of the macro IOC_FILE_MAX_HIGH */
#define LOAD_LIMIT  100.0  /* %: one core */
#define LEAST       (1 / 8.0) /* part of an alarm limit: an IOC with less is fine */

static double findWorst(const ebpfMonIocHealth *row)
{
    const double parts[] = {
        row->callback[0] / DELAY_LIMIT, row->callback[1] / DELAY_LIMIT, row->callback[2] / DELAY_LIMIT,
        row->once / DELAY_LIMIT, row->hold / DELAY_LIMIT, row->cpu / LOAD_LIMIT,
        row->fdLimit ? 100.0 * row->fds / row->fdLimit / FILE_LIMIT : 0
    };
    double worst = LEAST;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        worst = fmax(worst, parts[i]); /* if one is NaN (not measured), fmax returns the other */
    return worst;
}

static int compareIocs(const void *a, const void *b)
{
    const ebpfMonIocHealth *x = a, *y = b;
    int worst;

    if (x->isWatched != y->isWatched)
        return x->isWatched ? -1 : 1;
    worst = ilogb(findWorst(y)) - ilogb(findWorst(x));
    return worst ? worst : strcmp(x->name, y->name);
}

static int compareScanRows(const void *a, const void *b)
{
    const ebpfMonScanRow *x = a, *y = b;
    int isLate = y->severity != x->severity ? y->severity - x->severity : (y->late > 0) - (x->late > 0);
    int load = ilogb(fmax(y->busy / LOAD_LIMIT, LEAST)) - ilogb(fmax(x->busy / LOAD_LIMIT, LEAST));
    int ioc = strcmp(x->ioc, y->ioc);

    if (isLate)
        return isLate;
    if (load)
        return load;
    if (ioc)
        return ioc;
    return x->period < y->period ? -1 : x->period > y->period ? 1 : 0;
}

void ebpfMonRowOrderSort(ebpfMonHealth *health)
{
    qsort(health->ioc, health->iocs, sizeof(health->ioc[0]), compareIocs);
    qsort(health->scan, health->scans, sizeof(health->scan[0]), compareScanRows);
}

/* --- collecting --- */

/*
 * Reading many IOCs takes a while, so the collector does not hold the targets lock meanwhile. First it lists the IOCs
 * under the lock. Then it reads /proc, the IOCs' memory and the thread table of the kernel part without the lock. At
 * the end it takes the lock again to look up the names of records.
 */

#define THREADS_MAX 16384
#define CPU_WEIGHT    0.4           /* one reading is coarse: /proc counts in ticks of 10 ms */
#define SERVER_CPU_NS 4500000000ull /* the threads of a CA server are read at every fifth look */

/* What is copied of an IOC under the targets lock. */
typedef struct {
    uint32_t id;
    pid_t    pid;
    uint64_t start;
    uint64_t clientQ;
    uint64_t accepts;  /* address of interruptAccept, after iocInit; 0: not known */
    uint64_t scanMenu;
    uint16_t spvt;     /* as in ebpfMonCommon */
    char     name[EBPFMON_HEALTH_NAME];
    int      isRead;   /* its database was read, and "base" is known */
    const ebpfMonBaseRelease *base;
    uint32_t exitCode; /* as in ebpfMonTarget; also hasExit, exitAt */
    int      hasExit;
    uint64_t exitAt;
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
    stillIocs     stills;
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
    if (c->cpu && c->serverCpu && c->scanThreads && c->passRecords && c->hangFinder && c->lives && c->hangs)
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
                    .accepts = t->running ? t->image.interruptAccept : 0, .scanMenu = findScanMenu(t),
                    .exitCode = t->exit.code, .hasExit = t->exit.isKnown, .exitAt = t->exit.at, .gone = t->gone,
                    .watched = t->level > ebpfMonLevelOff,
                    .timed = t->level >= ebpfMonLevelChains, .turn = t->turn };
    snprintf(p->name, sizeof(p->name), "%s", t->name);
    p->isRead = t->cat != NULL;
    if (t->cat) {
        p->base = t->cat->base;
        p->spvt = t->cat->common.spvt;
    }
}

/* health.ioc may have no room for all. So the watched IOCs come first, then those with a database that was read: others
 * may be no IOCs. */
static void listIocs(ebpfMonHealthCollector *c)
{
    c->iocs = 0;
    ebpfMonTargetsLock(c->targets);
    for (int pass = 0; pass < 3; pass++)
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(c->targets); t && c->iocs < EBPFMON_TARGETS_MAX; t = t->next)
            if ((t->level > ebpfMonLevelOff ? 0 : t->cat ? 1 : 2) == pass)
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
        raiseHighest(&c->health.fdMax, 100.0 * row->fds / row->fdLimit, row->name, "");
}

/* iocPause sets interruptAccept to 0 (iocInit.c). */
static int isPaused(const seenIoc *p)
{
    int accepts = 1;

    return p->watched && p->accepts && !ebpfMonMemReadNow(p->pid, p->accepts, &accepts, sizeof(accepts)) && !accepts;
}

/* "state": as in proc(5). The threads of a frozen group of version 1 are in state D, those of version 2 in S. */
static char findState(const seenIoc *p, char state)
{
    if ((state == 'S' || state == 'D') && p->watched && ebpfMonProcIsFrozen(p->pid))
        return frozen;
    return (state == 'S' || state == 'R') && isPaused(p) ? paused : state;
}

static void readIocs(ebpfMonHealthCollector *c)
{
    c->health.iocs = 0;
    memset(&c->health.fdMax, 0, sizeof(c->health.fdMax));
    c->health.cpuMax = c->health.memMax = NAN; /* without an IOC there is no largest one: 0 would be false */
    for (unsigned i = 0; i < c->iocs; i++) {
        seenIoc *p = &c->ioc[i];
        ebpfMonProcStat stat;

        c->life[i] = (ebpfMonLife){ .id = p->id, .pid = p->pid, .gone = p->gone, .watched = p->watched,
                                    .fresh = p->start >= c->ourStart, .exitCode = p->exitCode,
                                    .hasExit = p->hasExit };
        snprintf(c->life[i].name, sizeof(c->life[i].name), "%s", p->name);
        if (p->hasExit)
            c->life[i].uptime = ebpfMonProcUptime(p->start, p->exitAt);
        if (p->gone || ebpfMonProcStatGet(p->pid, &stat) || stat.start != p->start)
            continue;
        c->life[i].uptime = stat.uptime;
        c->life[i].state = findState(p, stat.state);
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
            ebpfMonScanThreadsAdd(c->scanThreads, &(ebpfMonScanIoc){ p->id, p->pid, p->spvt, p->scanMenu, p->name,
                                                                     isTold(&c->stills, p->id) },
                                  t->tid, &t->seen, now);
    }
    ebpfMonScanThreadsPublish(c->scanThreads, c->targets, &c->health);
    c->isBusy |= ebpfMonScanThreadsAreWaiting(c->scanThreads);
}

static void nameHolders(ebpfMonHealthCollector *c)
{
    c->health.callbackMax = c->health.onceMax = c->health.holdMax = (ebpfMonHighest){ 0 };
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

/* These are no trouble of an IOC, so they leave IOC_EVENTS its alarm. */
static void addEventsOfModules(ebpfMonHealth *health, const epicsTimeStamp *at)
{
    char text[EBPFMON_MODULE_EVENT + 1];

    while (ebpfMonModulesTakeEvent(text) == 0)
        ebpfMonHealthEventsAdd(health, at, health->isEventTrouble, "%s", text);
}

/* IOCs that were gone before this monitor began. Returns how many they are. */
static unsigned takeRestored(ebpfMonHealthCollector *c, const epicsTimeStamp *at)
{
    const ebpfMonPublished *published = ebpfMonPublishedLock();
    unsigned n = published->restored;

    for (unsigned i = 0; i < n; i++)
        ebpfMonLivesRestore(c->lives, &published->restoredIoc[i], at, ebpfMonClockSeconds());
    ebpfMonPublishedUnlock();
    return n;
}

void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *c)
{
    epicsTimeStamp at;
    ebpfMonPublished *published;
    unsigned hanging, restored;
    uint64_t now;

    listIocs(c);
    readIocs(c);
    c->health.ills = 0;
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
    restored = takeRestored(c, &at);
    ebpfMonLivesUpdate(c->lives, c->life, c->iocs, &at, ebpfMonClockSeconds(), &c->health);
    ebpfMonHangsUpdate(c->hangs, c->found, hanging, c->lives, &at, &c->health);
    updateStills(&c->stills, c->life, c->iocs, &at, ebpfMonClockSeconds(), &c->health);
    c->isBusy |= hanging > 0 || c->stills.n > 0;
    addEventsOfModules(&c->health, &at);
    ebpfMonRowOrderSort(&c->health);
    published = ebpfMonPublishedLock();
    published->health = c->health;
    if (published->restored == restored) /* else the next look takes all of them again, which changes nothing */
        published->restored = 0;
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
