/* SPDX-License-Identifier: BSD-3-Clause */
#include <alarm.h>
#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <epicsStdio.h>
#include <epicsThread.h>
#include <epicsTime.h>
#include <errlog.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/text.h"
#include "common/worker.h"
#include "health/healthCollector.h"
#include "host/procRead.h"
#include "model/published.h"
#include "module/modules.h"
#include "probe/kernelEvents.h"
#include "probe/kernelTables.h"
#include "publish/publisher.h"
#include "publish/rankings.h"

/* --- changes of a group --- */

/* Values of a group that this thread writes: members that follow each other, without a gap between them; or of a table
 * the rows in use. */
typedef struct {
    ebpfMonGroup group;
    size_t at, size;  /* of all of them, or of a row */
    size_t used, max; /* where the number of rows in use is, an unsigned, and how many there can be; max 0: no table */
} groupPart;

#define AT(member)   offsetof(ebpfMonPublished, member)
#define SIZE(member) sizeof(((ebpfMonPublished *)NULL)->member)
#define VALUES(group, first, last) { ebpfMonGroup##group, AT(first), AT(last) + SIZE(last) - AT(first), 0, 0 }
#define ROWS(group, table, used) \
    { ebpfMonGroup##group, AT(table), SIZE(table[0]), AT(used), SIZE(table) / SIZE(table[0]) }

static const groupPart parts[] = {
    VALUES(State, state, stateMessage),
    VALUES(State, host, packets),
    ROWS(Iocs, iocs.ioc, iocs.rows),
    VALUES(Iocs, iocs.gone, iocs.count),
    VALUES(Iocs, iocs.timed, iocs.shown),
    VALUES(Puts, puts.count, puts.denied), /* every put increases the count */
    VALUES(Puts, puts.rate, puts.rate),
    ROWS(Proc, processings.busiest, processings.busiestCount),
    VALUES(Proc, processings.count, processings.busiestCount),
    ROWS(Chains, chains.slowest, chains.slowestCount),
    VALUES(Chains, chains.slowestCount, chains.slowestCount),
    VALUES(Chains, chains.selectedRoot, chains.selectedRoot),
    VALUES(Chains, chains.selectedFound, chains.selectedFound),
    VALUES(Chains, chains.hist, chains.histMax),
    ROWS(Async, asyncs.slowest, asyncs.slowestCount),
    VALUES(Async, asyncs.slowestCount, asyncs.slowestCount),
    VALUES(Async, asyncs.selectedFound, asyncs.selectedFound),
    VALUES(Async, asyncs.hist, asyncs.busyMax),
    ROWS(Watch, watched.row, watched.count),
    ROWS(Search, searches.name, searches.names),
    ROWS(Search, searches.client, searches.clients),
    ROWS(Search, searches.server, searches.servers),
    VALUES(Search, searches.count, searches.names),
    VALUES(Search, searches.clients, searches.clients),
    VALUES(Search, searches.beacons, searches.servers),
    ROWS(Health, health.ioc, health.iocs),
    ROWS(Health, health.scan, health.scans),
    ROWS(Health, health.hangLine, health.hangLines),
    ROWS(Health, health.event, health.events),
    ROWS(Health, health.goneIoc, health.goneRows),
    VALUES(Health, health.iocs, health.iocs),
    VALUES(Health, health.cpuMax, health.scans),
    VALUES(Health, health.lateCount, health.lateBrief),
    VALUES(Health, health.gone, health.gone),
    VALUES(Health, health.hangs, health.hangs),
    VALUES(Health, health.still, health.hangLines),
    VALUES(Health, health.restarts, health.eventHead),
};

/* 0: another thread writes this group. */
static uint64_t findHash(const ebpfMonPublished *published, ebpfMonGroup group)
{
    const char *base = (const char *)published;
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        const groupPart *p = &parts[i];
        size_t rows = p->max ? *(const unsigned *)(base + p->used) : 1;

        if (p->group == group)
            hash = ebpfMonHashFnv64(hash ? hash : EBPFMON_FNV64_BEGIN, base + p->at,
                                    p->size * (p->max && rows > p->max ? p->max : rows));
    }
    return hash;
}

int ebpfMonGroupChangesFind(ebpfMonGroupChanges *changes, ebpfMonPublished *published, ebpfMonGroup group)
{
    uint64_t hash = findHash(published, group);
    int isSame;

    if (!hash)
        return 0;
    /* until the first measurement the PVs are INVALID, so they must process once more then, even with the same value */
    hash = ebpfMonHashFnv64(hash, &published->isMeasured, sizeof(published->isMeasured));
    isSame = changes->group[group].isKnown && changes->group[group].hash == hash;
    if (isSame)
        published->time[group] = changes->group[group].time;
    changes->group[group].isKnown = 1;
    changes->group[group].hash = hash;
    changes->group[group].time = published->time[group];
    return !isSame;
}

/* --- cross-checks --- */

void ebpfMonAuditTextPublish(ebpfMonAuditText *text)
{
    char line[sizeof(((ebpfMonAuditValues *)0)->text)], when[24];
    ebpfMonPublished *published;
    ebpfMonAuditResults results;
    uint64_t sum = 0;

    ebpfMonTextCopy(line, sizeof(line), "all cross-checks agree");
    ebpfMonAuditsGet(text->audits, &results);
    for (int i = 0; i < ebpfMonAuditKinds; i++)
        sum += results.count[i];
    if (sum) {
        epicsTimeToStrftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &results.time);
        snprintf(line, sizeof(line), "%s: %s; %llu disagree, last %s", results.last,
                 ebpfMonAuditName(results.lastKind), (unsigned long long)sum, when);
    }
    published = ebpfMonPublishedLock();
    ebpfMonTextCopy(published->audit.text, sizeof(published->audit.text), line);
    published->audit.count = sum;
    ebpfMonPublishedUnlock();
    if (!text->hasFound && sum)
        errlogSevPrintf(errlogMinor, "ebpfMon: a cross-check failed: %s. Please report this. AUDIT_CNT counts them; "
                        "LOST_RESET resets it\n", line);
    text->hasFound = sum != 0;
}

/* --- the state --- */

ebpfMonState ebpfMonStateFind(const ebpfMonStateInput *input, char *text, size_t size)
{
    if (input->trouble[0]) {
        epicsSnprintf(text, size, "%s", input->trouble);
        return ebpfMonDegraded;
    }
    if (input->troubledIocs) {
        ebpfMonTextCopy(text, size, input->firstTrouble);
        if (input->troubledIocs > 1)
            ebpfMonTextAdd(text, size, " (and %u more: ebpfMonIocs)", input->troubledIocs - 1);
        return ebpfMonDegraded;
    }
    epicsSnprintf(text, size, "%swatching %u of %u IOC%s%s", input->isLooking ? "looking for IOCs: " : "",
                  input->watched, input->iocs, input->iocs == 1 ? "" : "s", input->isLooking ? " so far" : "");
    if (input->starting)
        ebpfMonTextAdd(text, size, "; %s " EBPFMON_NOTE_STARTS, input->firstStarting);
    if (input->starting > 1)
        ebpfMonTextAdd(text, size, " (and %u more)", input->starting - 1);
    return input->isLooking ? ebpfMonStarting : input->isStartingLong ? ebpfMonDegraded : ebpfMonRunning;
}

/* --- one light for a whole host, with its causes in words --- */

typedef struct {
    unsigned count;
    char     text[600];
} causes;

/* "of" is nonzero: there is such a cause. If there are more of its kind, it says so. */
static void EPICS_PRINTF_STYLE(3, 4) addCause(causes *c, unsigned of, const char *format, ...)
{
    size_t used = strlen(c->text);
    va_list args;

    if (!of)
        return;
    used += epicsSnprintf(c->text + used, sizeof(c->text) - used, "%s", c->count++ ? "; " : "");
    va_start(args, format);
    epicsVsnprintf(c->text + used, sizeof(c->text) - used, format, args);
    va_end(args);
    used = strlen(c->text);
    if (of > 1)
        epicsSnprintf(c->text + used, sizeof(c->text) - used, " (and %u more)", of - 1);
}

static void addLights(const ebpfMonPublished *p, ebpfMonHostLight light, causes *c)
{
    char text[EBPFMON_LIGHT_TEXT];

    for (unsigned i = 0; (i = ebpfMonModulesFindLight(p, light, i, text)) != 0;)
        addCause(c, 1, "%s", text);
}

#define VAIN_SEARCHES 20 /* a second; as the limit of UNFOUND_RATE */

/* The worst comes first. Beside trouble, warnings are only counted. */
static ebpfMonHostLight findCauses(const ebpfMonPublished *p, causes *c)
{
    const ebpfMonHealth *h = &p->health;
    const ebpfMonPut *bad = ebpfMonPublishedGetUnexpected(p, 0);
    causes minor = { 0 };

    addCause(c, h->gone, "IOC %s", h->goneText);
    addCause(c, h->still, "IOC %s", h->stillText);
    addCause(c, h->hangs, "%s%s%s", h->hangText, p->hangCause[0] ? ": " : "", p->hangCause);
    addCause(c, (unsigned)p->unexpected.open, "unexpected put to %s", bad ? bad->pv : "?");
    addCause(c, h->isFarLate && !h->areLateStill, "%s", h->lateText); /* not told twice */
    addLights(p, ebpfMonHostTrouble, c);
    addCause(c, p->log.lost > 0, "%llu lines of put logs are lost: %s", (unsigned long long)p->log.lost,
             p->log.lostCause);
    addCause(&minor, p->state == ebpfMonDegraded, "%s", p->stateMessage);
    addCause(&minor, h->lateNow > 0 && !h->isFarLate, "%s", h->lateText);
    addCause(&minor, p->losses.isGrowing, "events are lost: %s", p->losses.newest);
    addCause(&minor, p->packets.newest[0] != 0, "packets are lost: %s", p->packets.newest);
    addCause(&minor, p->packets.trouble[0] != 0, "%s", p->packets.trouble);
    addCause(&minor, p->searches.neverRate >= VAIN_SEARCHES, "%.0f searches a second are in vain: %s",
             p->searches.neverRate, p->searches.worst);
    addCause(&minor, p->log.state == ebpfMonLogTrouble, "%s", p->log.message);
    addCause(&minor, p->rules.refused, "%s", p->rules.message);
    addCause(&minor, p->audit.count > 0, "%s", p->audit.text);
    addLights(p, ebpfMonHostWarning, &minor);
    if (!c->count) {
        *c = minor;
        return c->count ? ebpfMonHostWarning : ebpfMonHostOk;
    }
    if (minor.count) {
        size_t used = strlen(c->text);

        epicsSnprintf(c->text + used, sizeof(c->text) - used, "; and %u %s", minor.count,
                      minor.count == 1 ? "warning" : "warnings");
    }
    return ebpfMonHostTrouble;
}

/* Sets published->host from the other values. The caller holds the lock of the published values. */
static void setHostStatus(ebpfMonPublished *p)
{
    causes c = { 0 };
    size_t used;

    p->host.status = findCauses(p, &c);
    addCause(&c, p->host.status == ebpfMonHostOk, "%s", p->stateMessage);
    if (p->state == ebpfMonStarting)
        p->host.status = ebpfMonHostUnknown;
    used = c.count > 1 ? epicsSnprintf(p->host.text, sizeof(p->host.text), "%u causes: ", c.count) : 0;
    ebpfMonTextCopy(p->host.text + used, sizeof(p->host.text) - used, c.text);
}

/* --- losses --- */

_Static_assert(EBPFMON_LOST_ALL <= EBPFMON_LOSSES_MAX, "published->losses has room for all reasons");

static const char *const reasonNames[EBPFMON_LOST_ALL] = {
    [EBPFMON_LOST_RING] = "event ring full", [EBPFMON_LOST_THREADS] = "thread table full",
    [EBPFMON_LOST_ROOTS] = "chain table full", [EBPFMON_LOST_NESTED] = "locks nested too deep",
    [EBPFMON_LOST_FAULT] = "memory not readable", [EBPFMON_LOST_KERNEL + ebpfMonLossGone] = "IOC gone",
    [EBPFMON_LOST_KERNEL + ebpfMonLossParts] = "too many chains at once",
    [EBPFMON_LOST_KERNEL + ebpfMonLossOwnPut] = "too many puts to the monitor",
    [EBPFMON_LOST_KERNEL + ebpfMonLossSkipped] = "program not run",
    [EBPFMON_LOST_KERNEL + ebpfMonLossUrgent] = "TCP urgent data",
    [EBPFMON_LOST_KERNEL + ebpfMonLossCircuits] = "too many connections",
    [EBPFMON_LOST_KERNEL + ebpfMonLossWrongSum] = "wrong checksum",
    [EBPFMON_LOST_KERNEL + ebpfMonLossOwnAddress] = "own address from outside",
    [EBPFMON_LOST_KERNEL + ebpfMonLossForged] = "packets of no connection",
    [EBPFMON_LOST_KERNEL + ebpfMonLossReused] = "packets of a reused port",
    [EBPFMON_LOST_KERNEL + ebpfMonLossDoubtful] = "packets of no certain put",
};

struct ebpfMonLossCounters {
    ebpfMonLossRead read;
    void        *arg;                /* of "read" */
    epicsMutexId lock;               /* guards "base" */
    uint64_t base[EBPFMON_LOST_ALL]; /* counters at the last reset; any thread */
    /* publishing thread only */
    int      hasLosses;              /* nonzero: there were losses at the last publication */
    uint64_t before[EBPFMON_LOST_ALL]; /* the counters since the start at the last publication */
    unsigned newest;                 /* the reason that has grown last */
    double   grownAt;                /* … when (s, monotonic); 0: since the last reset none has */
};

/* Reads the counters of the kernel part's table, and those of "losses", an ebpfMonLosses. */
static void readLossMonitor(void *losses, uint64_t lost[EBPFMON_LOST_ALL])
{
    ebpfMonKernelGetLost(lost);
    for (int i = 0; i < ebpfMonLossKinds; i++)
        lost[EBPFMON_LOST_KERNEL + i] = ebpfMonLossesGet(losses, (ebpfMonLoss)i);
    lost[EBPFMON_LOST_KERNEL + ebpfMonLossSkipped] = ebpfMonKernelCountSkipped();
}

ebpfMonLossCounters *ebpfMonLossCountersNew(ebpfMonLossRead read, void *arg)
{
    ebpfMonLossCounters *counters = calloc(1, sizeof(*counters));

    if (counters) {
        counters->read = read;
        counters->arg = arg;
        counters->lock = epicsMutexMustCreate();
    }
    return counters;
}

void ebpfMonLossCountersFree(ebpfMonLossCounters *counters)
{
    if (!counters)
        return;
    epicsMutexDestroy(counters->lock);
    free(counters);
}

void ebpfMonLossCountersReset(ebpfMonLossCounters *counters)
{
    uint64_t now[EBPFMON_LOST_ALL];

    counters->read(counters->arg, now);
    epicsMutexMustLock(counters->lock);
    memcpy(counters->base, now, sizeof(now));
    epicsMutexUnlock(counters->lock);
}

static void noteGrowth(ebpfMonLossCounters *counters, const uint64_t now[EBPFMON_LOST_ALL])
{
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) {
        if (now[i] > counters->before[i]) {
            counters->newest = i;
            counters->grownAt = ebpfMonClockSeconds();
        }
        counters->before[i] = now[i];
    }
}

void ebpfMonLossCountersPublish(ebpfMonLossCounters *counters)
{
    uint64_t since[EBPFMON_LOST_ALL], sum = 0;
    ebpfMonPublished *published;
    char which[160] = "";

    counters->read(counters->arg, since);
    noteGrowth(counters, since);
    epicsMutexMustLock(counters->lock);
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) /* if a reset read the counters after us, its values are greater */
        since[i] -= since[i] > counters->base[i] ? counters->base[i] : since[i];
    epicsMutexUnlock(counters->lock);
    published = ebpfMonPublishedLock();
    for (unsigned i = 0; i < EBPFMON_LOST_ALL; i++) {
        ebpfMonLossRow *row = &published->losses.by[i];

        snprintf(row->reason, sizeof(row->reason), "%s", reasonNames[i]);
        row->count = since[i];
        sum += since[i];
        if (since[i])
            epicsSnprintf(which + strlen(which), sizeof(which) - strlen(which), " %s %llu;", reasonNames[i],
                          (unsigned long long)since[i]);
    }
    published->losses.kinds = EBPFMON_LOST_ALL;
    published->losses.count = sum;
    published->losses.isGrowing = sum && ebpfMonClockSeconds() - counters->grownAt < EBPFMON_LOSS_SECONDS;
    snprintf(published->losses.newest, sizeof(published->losses.newest), "%s",
             published->losses.isGrowing ? reasonNames[counters->newest] : "");
    ebpfMonPublishedUnlock();
    if (!counters->hasLosses && sum)
        errlogSevPrintf(errlogMinor, "ebpfMon: events were lost:%s LOST_CNTS counts them; LOST_RESET resets it\n",
                        which);
    counters->hasLosses = sum != 0;
}

/* --- the thread --- */

#define PERIOD_NS EBPFMON_SECOND_NS
#define FIRST_LOOKS 10 /* s; after these the values are published in any case, also if an IOC is still being read */
#define NO_COST_NS (8 * EBPFMON_SECOND_NS) /* after that without a cost there is none: the first sample comes after some
                                            * seconds */
#define START_NS (60 * EBPFMON_SECOND_NS) /* longer than most IOCs start */
#define SMOOTH 0.3 /* weight of the last second in PUT_RATE */
#define STOP_SECONDS 5.0
#define MEMORY_NS (10 * EBPFMON_SECOND_NS) /* between two readings of the memory: it changes slowly, and takes long */
#define CPU_STEP    0.01 /* the precision (PREC) of the PVs CPU and MEM */
#define MEMORY_STEP 0.1
/* The groups whose values also change while nothing happens: our own CPU time, that of the IOCs, beacons. */
#define RESTLESS (1u << ebpfMonGroupState | 1u << ebpfMonGroupHealth | 1u << ebpfMonGroupSearch)

struct ebpfMonPublisher {
    ebpfMonTargets  *targets;  /* all pointers are fixed; "worker" has a lock of its own */
    ebpfMonSearch   *search;
    const ebpfMonCosts *costs; /* of our probes, as measured at the start */
    ebpfMonRankings *rankings;
    ebpfMonHeatMaps *heatMaps;
    ebpfMonAsyncRankings *asyncs;
    ebpfMonHealthCollector *health;
    ebpfMonLossCounters    *losses;
    ebpfMonSharedWorker worker;
    int      isChanged;       /* atomic; nonzero: IOCs, state or losses are to be published at once */
    size_t   silenceEnd;      /* atomic; when the last silence ended (monotonic ns); 0: it is noticed already */
    epicsMutexId lock;        /* protects "trouble" */
    char     trouble[200];
    /* publishing thread only */
    int      isQuiet;         /* nothing changed in the last second */
    int      isSilent;        /* … and nothing happens: it looks seldom */
    double   cpuBefore;       /* CPU time (s) of the monitor … */
    uint64_t cpuAt;           /* … at this time (monotonic ns); 0: not known */
    uint64_t memoryAt;        /* the memory was read (monotonic ns) */
    uint64_t searchedAt;      /* searches were published (monotonic ns) */
    uint64_t putsBefore;
    unsigned looks;           /* publications of a second since the start, FIRST_LOOKS at most */
    int      areFollowed;     /* at the last of these, all IOCs were followed */
    uint64_t noCostUntil;     /* until then (monotonic ns) the cost is not known, if it is 0; 0: no IOC is watched */
    uint64_t slowUntimed;     /* slow passes without timed chains, of all IOCs since the start */
    ebpfMonAuditText audit;
    ebpfMonGroupChanges changes;
    ebpfMonIocRow row[EBPFMON_IOCS_MAX];
};

ebpfMonPublisher *ebpfMonPublisherNew(ebpfMonTargets *targets, ebpfMonSearch *search, ebpfMonLosses *losses,
                                      ebpfMonAudits *audits, const ebpfMonCosts *costs)
{
    ebpfMonPublisher *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->targets = targets;
    p->search = search;
    p->costs = costs;
    p->audit.audits = audits;
    ebpfMonPublishedLock()->isMeasured = 0;
    ebpfMonPublishedUnlock();
    ebpfMonSharedWorkerInit(&p->worker);
    p->lock = epicsMutexMustCreate();
    p->rankings = ebpfMonRankingsNew(targets, &ebpfMonRankingSourcesKernel);
    p->asyncs = ebpfMonAsyncRankingsNew(targets, ebpfMonKernelEachAsync);
    p->health = ebpfMonHealthCollectorNew(targets);
    p->losses = ebpfMonLossCountersNew(readLossMonitor, losses);
    p->heatMaps = ebpfMonHeatMapsNew();
    if (p->rankings && p->asyncs && p->heatMaps && p->health && p->losses)
        return p;
    ebpfMonPublisherFree(p);
    return NULL;
}

void ebpfMonPublisherFree(ebpfMonPublisher *p)
{
    if (!p)
        return;
    ebpfMonRankingsFree(p->rankings);
    ebpfMonHeatMapsFree(p->heatMaps);
    ebpfMonAsyncRankingsFree(p->asyncs);
    ebpfMonHealthCollectorFree(p->health);
    ebpfMonLossCountersFree(p->losses);
    ebpfMonSharedWorkerDestroy(&p->worker);
    epicsMutexDestroy(p->lock);
    free(p);
}

void ebpfMonPublisherWake(ebpfMonPublisher *p)
{
    epicsAtomicSetIntT(&p->isChanged, 1);
    ebpfMonSharedWorkerWake(&p->worker);
}

void ebpfMonPublisherEndSilence(ebpfMonPublisher *p, uint64_t at)
{
    epicsAtomicSetSizeT(&p->silenceEnd, at);
    ebpfMonSharedWorkerWake(&p->worker);
}

void ebpfMonPublisherSetTrouble(ebpfMonPublisher *p, const char *text)
{
    epicsMutexMustLock(p->lock);
    snprintf(p->trouble, sizeof(p->trouble), "%s", text);
    epicsMutexUnlock(p->lock);
    ebpfMonPublisherWake(p);
}

void ebpfMonPublisherResetLost(ebpfMonPublisher *p)
{
    ebpfMonLossCountersReset(p->losses);
    ebpfMonAuditsReset(p->audit.audits);
    ebpfMonPublisherWake(p);
}

void ebpfMonPublisherAcknowledgeGone(ebpfMonPublisher *p)
{
    ebpfMonHealthCollectorAcknowledge(p->health);
    ebpfMonPublisherWake(p); /* ends a silence */
}

static void publishState(ebpfMonPublisher *p)
{
    char text[256], first[200], trouble[sizeof(p->trouble)], starting[EBPFMON_IOCNAME_SIZE] = "";
    ebpfMonStateInput input = { .trouble = trouble, .firstTrouble = first, .firstStarting = starting,
                                .isLooking = !ebpfMonTargetsGetSearched(p->targets) };
    ebpfMonState state;

    epicsMutexMustLock(p->lock);
    memcpy(trouble, p->trouble, sizeof(trouble));
    epicsMutexUnlock(p->lock);
    ebpfMonTargetsLock(p->targets);
    input.troubledIocs = ebpfMonTargetsFindTrouble(p->targets, first, sizeof(first));
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->targets); t; t = t->next)
        if (!t->gone) {
            input.iocs++;
            input.watched += t->level > ebpfMonLevelOff;
            if (!ebpfMonTargetIsStarting(t))
                continue;
            input.isStartingLong |= ebpfMonClockMonotonic() - t->foundAt > START_NS;
            if (!input.starting++)
                snprintf(starting, sizeof(starting), "%s", t->name);
        }
    ebpfMonTargetsUnlock(p->targets);
    state = ebpfMonStateFind(&input, text, sizeof(text));
    ebpfMonPublishedSetState(state, text);
    setHostStatus(ebpfMonPublishedLock());
    ebpfMonPublishedUnlock();
}

static void makeIocRow(const ebpfMonTarget *t, const ebpfMonIocPart *part, ebpfMonIocRow *row)
{
    snprintf(row->name, sizeof(row->name), "%s", t->name);
    row->pid = (int32_t)t->pid;
    snprintf(row->version, sizeof(row->version), "%s", t->version);
    row->records = t->cat ? t->cat->count : 0;
    row->level = t->level;
    row->id = t->iocId;
    snprintf(row->note, sizeof(row->note), "%s", ebpfMonTargetIsStarting(t) ? EBPFMON_NOTE_STARTS : t->note);
    row->severity = row->note[0] && !t->remark ? MINOR_ALARM : NO_ALARM;
    row->cost = ebpfMonTargetGetWholeCost(t);
    row->timed = t->level >= ebpfMonLevelChains ? round(t->timed) : NAN;
    row->procCount = part ? part->processed : 0;
}

static void makeGoneRow(const ebpfMonGoneIoc *gone, ebpfMonIocRow *row)
{
    *row = (ebpfMonIocRow){ .level = ebpfMonLevelOff, .timed = NAN, .severity = MAJOR_ALARM };
    snprintf(row->name, sizeof(row->name), "%s", gone->name);
    snprintf(row->note, sizeof(row->note), "%s", gone->note);
}

/* What is wrong with an IOC stands in its row. */
static void addIlls(const ebpfMonHealth *health, ebpfMonIocRow *row, unsigned rows)
{
    for (unsigned i = 0; i < rows; i++)
        for (unsigned k = 0; k < health->ills; k++)
            if (health->ill[k].iocId == row[i].id && health->ill[k].severity >= row[i].severity) {
                row[i].severity = health->ill[k].severity;
                ebpfMonTextCopy(row[i].note, sizeof(row[i].note), health->ill[k].text);
            }
}

/* The order of the list: what an operator should look at first. First the watched IOCs with an alarm or a note, then
 * the other watched IOCs; by name. */
static int compareIocRows(const void *a, const void *b)
{
    const ebpfMonIocRow *x = a, *y = b;
    int byName = strcmp(x->name, y->name);

    if ((x->level == ebpfMonLevelOff) != (y->level == ebpfMonLevelOff))
        return x->level == ebpfMonLevelOff ? 1 : -1;
    if (x->severity != y->severity)
        return y->severity - x->severity;
    if (!x->note[0] != !y->note[0])
        return x->note[0] ? -1 : 1;
    return byName ? byName : x->pid - y->pid;
}

/* What is taken from all IOCs. NAN: it is not known yet, because the cost of no watched IOC has been looked at. */
static double judgeCost(ebpfMonPublisher *p, double cost, int isWatched)
{
    uint64_t now = ebpfMonClockMonotonic();

    if (!isWatched)
        p->noCostUntil = 0;
    else if (cost > 0)
        p->noCostUntil = now;
    else if (!p->noCostUntil)
        p->noCostUntil = now + NO_COST_NS;
    return isWatched && cost <= 0 && now < p->noCostUntil ? NAN : cost;
}

static void publishIocs(ebpfMonPublisher *p)
{
    ebpfMonPublished *published;
    unsigned n = 0, gone, others, shown = 0;
    double cost = 0, timed = NAN;
    ebpfMonIocPart *part;
    int isWatched = 0;

    ebpfMonTargetsLock(p->targets);
    for (int pass = 0; pass < 2; pass++) /* IOCs with a catalogue go first, because the table may be too short for
                                          * all */
        for (ebpfMonTarget *t = ebpfMonTargetsGetFirst(p->targets); t; t = t->next) {
            if (t->gone || (t->cat == NULL) != pass)
                continue;
            part = ebpfMonRankingsFindIoc(p->rankings, t);
            if (n < EBPFMON_IOCS_MAX)
                makeIocRow(t, part, &p->row[n++]);
            cost += ebpfMonTargetGetWholeCost(t);
            isWatched |= t->level > ebpfMonLevelOff;
            if (t->level >= ebpfMonLevelChains)
                timed = fmin(timed, round(t->timed));
            if (part) {
                p->slowUntimed += t->slowUntimed - part->slowUntimed;
                part->slowUntimed = t->slowUntimed;
            }
            shown += t->level > ebpfMonLevelOff ? t->shown : 0; /* its records stay for a later filter */
        }
    ebpfMonTargetsUnlock(p->targets);
    published = ebpfMonPublishedLock();
    addIlls(&published->health, p->row, n);
    qsort(p->row, n, sizeof(p->row[0]), compareIocRows);
    for (unsigned i = 0, most = 0; i < n; i++)
        if (p->row[i].cost >= p->row[most].cost) {
            most = i;
            ebpfMonTextSet(published->costs.most, sizeof(published->costs.most), p->row[i].name);
        }
    gone = published->health.goneRows < EBPFMON_IOCS_MAX - n ? published->health.goneRows : EBPFMON_IOCS_MAX - n;
    for (unsigned i = 0; i < gone; i++)
        makeGoneRow(&published->health.goneIoc[i], &published->iocs.ioc[i]);
    memcpy(published->iocs.ioc + gone, p->row, n * sizeof(p->row[0]));
    others = published->others.count < EBPFMON_IOCS_MAX - n - gone ? published->others.count :
             EBPFMON_IOCS_MAX - n - gone;
    memcpy(published->iocs.ioc + gone + n, published->others.ioc, others * sizeof(p->row[0]));
    published->iocs.gone = gone;
    published->iocs.count = n;
    published->iocs.rows = gone + n + others;
    published->iocs.shown = shown;
    published->iocs.timed = timed;
    published->iocs.slowUntimed = p->slowUntimed;
    published->costs.iocs = judgeCost(p, cost, isWatched);
    epicsTimeGetCurrent(&published->time[ebpfMonGroupIocs]);
    ebpfMonPublishedUnlock();
}

/* The memory (MB) that the monitor allocated, without the files of the program, which other processes may share. */
static double readOurMemory(void)
{
    char text[4096];

    ebpfMonProcReadText(0, "status", text, sizeof(text));
    return (double)ebpfMonProcFindNumber(text, "\nRssAnon:", 0) / 1e3;
}

static double roundTo(double value, double step)
{
    return round(value / step) * step;
}

/* Publishes the CPU time and the memory of the monitor, rounded to the precision of the PVs. Otherwise they would
 * change each second. */
static void publishOwnCosts(ebpfMonPublisher *p)
{
    struct timespec cpu;
    uint64_t now = ebpfMonClockMonotonic();
    double used, memory = NAN;
    ebpfMonPublished *published;

    if (p->looks < FIRST_LOOKS || now - p->memoryAt >= MEMORY_NS) {
        memory = roundTo(readOurMemory() + (double)ebpfMonKernelCountMemory() / 1e6, MEMORY_STEP);
        p->memoryAt = now;
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    used = (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
    published = ebpfMonPublishedLock();
    if (p->cpuAt && now > p->cpuAt)
        published->costs.cpu = roundTo(100 * (used - p->cpuBefore) / ((double)(now - p->cpuAt) / 1e9), CPU_STEP);
    if (!isnan(memory))
        published->costs.memory = memory;
    published->costs.trapNs = p->costs->entryNs;
    ebpfMonPublishedUnlock();
    p->cpuBefore = used;
    p->cpuAt = now;
}

static void publishPutRate(ebpfMonPublisher *p, double seconds)
{
    ebpfMonPublished *published = ebpfMonPublishedLock();
    ebpfMonPutValues *puts = &published->puts;
    double rate = (double)(puts->count - p->putsBefore) / seconds, before = puts->rate;

    p->putsBefore = puts->count;
    puts->rate = rate == 0 && puts->rate < 0.01 ? 0 : puts->rate + SMOOTH * (rate - puts->rate);
    if (puts->rate != before || !puts->rateTime.secPastEpoch) /* archivers drop a value that has the same time as the
                                                               * one before */
        epicsTimeGetCurrent(&puts->rateTime);
    ebpfMonPublishedUnlock();
}

/* Lets the PVs of the groups process that have changed. Returns a bit for each of these groups. */
static uint32_t notifyChanged(ebpfMonPublisher *p)
{
    uint32_t changed = 0;

    for (int g = 0; g < ebpfMonGroupCount; g++) {
        int isChanged = ebpfMonGroupChangesFind(&p->changes, ebpfMonPublishedLock(), (ebpfMonGroup)g);

        ebpfMonPublishedUnlock();
        if (isChanged)
            ebpfMonPublishedNotify((ebpfMonGroup)g);
        changed |= (uint32_t)!!isChanged << g;
    }
    return changed;
}

static void publishChanges(ebpfMonPublisher *p)
{
    publishIocs(p);
    ebpfMonLossCountersPublish(p->losses);
    ebpfMonAuditTextPublish(&p->audit);
    publishState(p);
    notifyChanged(p);
}

/* Nonzero: there was a whole second with all IOCs that ran when the monitor started. Before, a count of 0 would be
 * wrong. */
static int isMeasured(ebpfMonPublisher *p)
{
    int before = p->areFollowed;

    if (p->looks == FIRST_LOOKS)
        return 1;
    p->areFollowed = ebpfMonTargetsAreFollowed(p->targets);
    p->looks = before && p->areFollowed ? FIRST_LOOKS : p->looks + 1;
    return p->looks == FIRST_LOOKS;
}

static void publishSearches(ebpfMonPublisher *p)
{
    uint64_t now = ebpfMonClockMonotonic();

    ebpfMonSearchPublish(p->search, ebpfMonClockReal(), (double)(now - p->searchedAt) / 1e9);
    p->searchedAt = now;
}

/* After a look at everything. "changed": as notifyChanged returned it. Rates go down to 0 before there is silence, and
 * a thread that holds a lock set or is in a callback may hang. */
static void judgeSilence(ebpfMonPublisher *p, int measured, uint32_t changed)
{
    p->isQuiet = measured && !(changed & ~RESTLESS) && !ebpfMonHealthCollectorIsBusy(p->health);
    p->isSilent = p->isQuiet && ebpfMonKernelIsSilent();
    if (!p->isQuiet)
        ebpfMonKernelBreakSilence();
}

static void publishSecond(ebpfMonPublisher *p, double seconds)
{
    int measured = isMeasured(p);

    if (p->isQuiet && !ebpfMonKernelIsSilent()) /* before the look: what it does not see ends the silence */
        ebpfMonKernelBeginSilence();
    publishPutRate(p, seconds);
    ebpfMonRankingsPublishRecords(p->rankings, seconds);
    ebpfMonRankingsPublishChains(p->rankings);
    ebpfMonHeatMapsPublish(p->heatMaps, ebpfMonClockMonotonic());
    ebpfMonAsyncRankingsPublish(p->asyncs, ebpfMonClockMonotonic());
    ebpfMonHealthCollectorPublish(p->health);
    publishSearches(p);
    ebpfMonPublishedLock()->isMeasured = measured;
    ebpfMonPublishedUnlock();
    publishIocs(p);
    ebpfMonLossCountersPublish(p->losses);
    ebpfMonAuditTextPublish(&p->audit);
    ebpfMonModulesTellSecond();
    publishOwnCosts(p);
    publishState(p);
    judgeSilence(p, measured, notifyChanged(p));
}

/* Another thread woke this one: something is to be published at once, or a silence ended. Returns the time from which
 * rates are counted: in a silence nothing was to be counted until it ended. */
static uint64_t takeWake(ebpfMonPublisher *p, uint64_t last)
{
    uint64_t end = epicsAtomicGetSizeT(&p->silenceEnd);

    epicsAtomicSetSizeT(&p->silenceEnd, 0);
    if (epicsAtomicCmpAndSwapIntT(&p->isChanged, 1, 0) == 1) {
        publishChanges(p);
        ebpfMonKernelBreakSilence();
        end = ebpfMonClockMonotonic();
    }
    if (!end || !p->isSilent)
        return last;
    p->isSilent = p->isQuiet = 0;
    return end > last ? end : last;
}

static void runPublisher(ebpfMonWorker *worker, void *arg)
{
    ebpfMonPublisher *p = arg;
    uint64_t last = p->searchedAt = ebpfMonClockMonotonic();

    publishOwnCosts(p); /* the start of the first second's measurement */
    while (!ebpfMonWorkerIsStopping(worker)) {
        uint64_t now = ebpfMonClockMonotonic(), due = p->isSilent ? ebpfMonClockNextLook(last) : last + PERIOD_NS;

        /* A new IOC, an IOC that ended, a new level and a reset are published at once. */
        if (now < due && ebpfMonWorkerWait(worker, (double)(due - now) / 1e9)) {
            last = takeWake(p, last);
            continue;
        }
        now = ebpfMonClockMonotonic();
        publishSecond(p, (double)(now - last) / 1e9);
        last = now;
    }
}

int ebpfMonPublisherStart(ebpfMonPublisher *p)
{
    return ebpfMonSharedWorkerSet(&p->worker, ebpfMonWorkerStart("ebpfMonPublish", epicsThreadPriorityLow,
                                                                 runPublisher, p));
}

int ebpfMonPublisherStop(ebpfMonPublisher *p)
{
    return ebpfMonSharedWorkerStop(&p->worker, STOP_SECONDS);
}
