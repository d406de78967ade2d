/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "host/procStat.h"
#include "watch/followed.h"
#include "watch/governor.h"
#include "watch/levelChoice.h"
#include "watch/target.h"

/* --- costs --- */

/* Percent of the time in which chains of scan lists are timed, for the budget. 0: another level, or its passes are not
 * watched, so to time fewer chains would save nothing. */
static double findTimedPart(const ebpfMonTarget *t, const ebpfMonFilter *filter)
{
    return t->level == ebpfMonLevelChains && t->sweeps ? ebpfMonLevelChoiceFindPercent(t, filter) : 0;
}

/* What turns did to the seconds of this sample. */
static void addTurns(ebpfMonTarget *t, ebpfMonCostSample *sample)
{
    const ebpfMonTurns *turns = &t->followed->timing.turns;
    double timed, before = t->followed->timing.timedBefore;

    if (t->level != ebpfMonLevelChains || !t->sweeps || !turns->lookedAt)
        return;
    timed = ebpfMonTurnsTimed(turns, sample->now);
    t->followed->timing.timedBefore = timed;
    if (before < 0 || sample->seconds <= 0)
        return; /* for some of these seconds each chain was watched */
    sample->inTurns = ebpfMonTurnsExpect(turns, sample->now);
    sample->wasTimed = fmin(1, (timed - before) / sample->seconds);
}

/* Which part of the entry probes is single-stepped. The often hit ones decide: lock, unlock, completed. */
static double findSteppedPart(const ebpfMonAttached *att)
{
    uint32_t often = EBPFMON_BIT(ebpfMonProgLock) | EBPFMON_BIT(ebpfMonProgUnlock) | EBPFMON_BIT(ebpfMonProgCompleted);
    int on = __builtin_popcount(att->on & often), stepped = __builtin_popcount(att->stepped & often);

    return on ? (double)stepped / on : 0;
}

void ebpfMonCostSampleBegin(ebpfMonTarget *t, const struct ebpfMonHits *hits, uint64_t now)
{
    t->followed->cost.hits = *hits;
    t->followed->cost.at = now;
    t->followed->cost.cpu = ebpfMonClockProcessCpu(t->pid);
    t->followed->timing.timedBefore = -1;
}

/* The traps and the programs since the last look. A counter that is smaller than before is one of another IOC. */
static struct ebpfMonHits takeHits(ebpfMonTarget *t, const struct ebpfMonHits *hits)
{
    struct ebpfMonHits delta;

    for (int i = 0; i < EBPFMON_HIT_KINDS; i++)
        delta.n[i] = hits->n[i] >= t->followed->cost.hits.n[i] ? hits->n[i] - t->followed->cost.hits.n[i] : 0;
    t->followed->cost.hits = *hits;
    return delta;
}

/* Percent of one core that the IOC took, all its threads. */
static double takeLoad(ebpfMonTarget *t, double seconds)
{
    uint64_t cpu = ebpfMonClockProcessCpu(t->pid), before = t->followed->cost.cpu;

    t->followed->cost.cpu = cpu;
    return cpu > before && seconds > 0 ? (double)(cpu - before) / 1e7 / seconds : 0;
}

int ebpfMonCostSampleTake(const ebpfMonCosts *costs, ebpfMonTarget *t, const ebpfMonFilter *filter,
                          const struct ebpfMonHits *hits, uint64_t now, ebpfMonCostSpent *spent,
                          ebpfMonCostSample *sample)
{
    uint64_t since = t->followed->cost.at;
    double seconds = (double)(now - since) / 1e9;
    struct ebpfMonHits delta;

    spent->strange = 0;
    spent->traps = spent->cold = 0;
    if (now <= since) /* other probes were attached in this round: the sample begins later than it */
        return 0;
    delta = takeHits(t, hits);
    *sample = (ebpfMonCostSample){
        .now = now,
        .seconds = seconds,
        .limit = filter->budget,
        .wantedLevel = t->wantedLevel,
        .level = t->level,
        .load = takeLoad(t, seconds),
        .timed = findTimedPart(t, filter),
        .trapOn = !!(t->followed->att.on & EBPFMON_BIT(ebpfMonProgCompleted)),
    };
    t->followed->cost.at = now;
    addTurns(t, sample);
    spent->strange = delta.n[EBPFMON_HIT_STRANGE];
    if (since == 0)
        return 0;
    spent->traps = (double)(delta.n[EBPFMON_HIT_ENTRY] + delta.n[EBPFMON_HIT_RETURN]) / seconds;
    spent->cold = (double)delta.n[EBPFMON_HIT_COLD] / EBPFMON_COLD_WHOLE / seconds;
    sample->cost = ebpfMonCostOf(costs, &delta, findSteppedPart(&t->followed->att)) / 1e7 / seconds;
    return 1;
}

/* --- what the kernel part must know ---
 *
 * What the kernel part must know of an IOC: struct ebpfMonTargetConf. The follower alone. */

_Static_assert((int)EBPFMON_OFF == (int)ebpfMonLevelOff && (int)EBPFMON_PUTS == (int)ebpfMonLevelPuts &&
               (int)EBPFMON_COUNTS == (int)ebpfMonLevelCounts && (int)EBPFMON_CHAINS == (int)ebpfMonLevelChains &&
               (int)EBPFMON_TRACE == (int)ebpfMonLevelTrace, "the kernel part numbers the levels alike");

/* How Base lies in the memory of this IOC. */
static void fillLayout(struct ebpfMonTargetConf *conf, const ebpfMonTarget *t)
{
    const ebpfMonBaseRelease *o = t->cat->base;
    const ebpfMonCommon *c = &t->cat->common;

    *conf = (struct ebpfMonTargetConf){
        .asActive = t->image.asActive,
        .breakpoints = t->image.breakpoints,
        .time = c->time,
        .spvt = c->spvt,
        .pact = c->pact,
        .ppn = c->ppn,
        .lset = c->lset,
        .disp = c->disp,
        .sevr = c->sevr,
        .stat = c->stat,
        .phas = c->phas,
        .proc = c->proc,
        .tse = c->tse,
        .clAddr = o->client.addr,
        .clUser = o->client.pUserName,
        .clHost = o->client.pHostName,
        .clRecvBuf = o->client.recvBuf,
        .clRecvStk = o->client.recvStk,
        .clRecvCnt = o->client.recvCnt,
        .ciuClient = o->channel.client,
        .ciuDbch = o->channel.dbch,
        .ciuAs = o->channel.asClientPVT,
        .asAccess = o->asgClient.access,
        .ppnChan = o->notify.chan,
        .ppnUsr = o->notify.usrPvt,
        .dbfGap = (uint8_t)(EBPFMON_DBF_MENU - o->dbf.menu),
        .chanAddr = o->has.channels ? EBPFMON_DbChannel_addr : 0,
        .linkOwner = (uint8_t)o->link.precord,
        .linkType = (uint8_t)o->link.type,
        .linkValue = (uint8_t)o->link.constantStr,
        .linkPvname = (uint8_t)o->link.pvname,
        .linkPvlMask = (uint8_t)o->link.pvlMask,
        .mutexOsd = o->has.channels ? o->mutex.osd : 0, /* in EPICS 3.14 the POSIX mutex is not the first member */
        .mutexId = o->has.channels ? o->mutex.id : 0,
        .ringHead = (uint8_t)o->ring.nextPush,
        .hasThreadNames = (uint8_t)o->has.threadNames,
        .onceHasLink = (uint8_t)o->has.onceLink,
        .endsOtherwise = t->followed->att.core->calls && t->followed->att.core->calls->endsOtherwise,
    };
}

/* The IOC must have a catalogue. "level": the one that its probes are for. */
static void fillTargetConf(struct ebpfMonTargetConf *conf, const ebpfMonTarget *t, ebpfMonLevel level,
                           const ebpfMonFilter *filter)
{
    fillLayout(conf, t);
    conf->iocId = t->iocId;
    conf->level = (uint16_t)level;
    conf->sample = filter->sample;
    conf->slowNs = (uint64_t)(filter->slowUs * 1000);
    conf->parallel = (uint16_t)t->followed->timing.parallel;
    conf->queuesSince = t->followed->probes.queuesSince;
    conf->isPutLockSeen = (uint8_t)t->followed->probes.isPutLockSeen;
    conf->serving = t->followed->probes.serving;
    conf->isScanPutSeen = (uint8_t)t->followed->sweep.isScanPutSeen;
    conf->putsTaken = t->followed->sweep.puts;
    conf->sweepsSince = t->followed->sweep.since;
    conf->sweeps = t->followed->sweep.number;
    conf->turn = t->followed->timing.number;
    conf->untimed = (uint32_t)t->followed->timing.untimed;
}

/* --- levels in force --- */

/* The part of the files that this process may open (ulimit -n) which probes do not use. */
#define RESERVE_PART 4
#define RESERVE_MAX  1024
#define TRY_NS 10000000000ull /* between two looks whether passes can be watched, at first */
/* The probes through which each put is seen: dbPut, and dbPutField for link fields. */
#define PUT_WAYS (EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField))

/* The probes of a level. *parallel: several threads take callbacks from one queue. */
static uint32_t findProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way, int *parallel)
{
    uint32_t want = ebpfMonLevelChoiceFindProbes(t, level, way);

    /* callback.c, callbackInit: "cbLow-1" where callbackParallelThreads wants several, else "cbLow" */
    *parallel = want & EBPFMON_BIT(ebpfMonProgPop) && ebpfMonProcHasThread(t->pid, "cb*-[0-9]*");
    return *parallel ? want | EBPFMON_BIT(ebpfMonProgPopReturn) : want;
}

/* Nonzero: these probes can be attached, and a quarter of the files that this process may open is left: for clients of
 * our own CA server, for packets, for logs. Without it our server would not answer any more. An IOC that is to be
 * watched as before may use some of this quarter: its probes change with its links, and to be in a turn takes one
 * more. */
static int hasFiles(const ebpfMonTarget *t, ebpfMonLevel level, uint32_t want)
{
    unsigned more = (unsigned)__builtin_popcount(want & ~t->followed->att.on), limit, left, reserve;

    if (!more)
        return 1;
    left = ebpfMonProcFilesLeft(&limit);
    reserve = limit / RESERVE_PART < RESERVE_MAX ? limit / RESERVE_PART : RESERVE_MAX;
    if (t->followed->att.on && level <= t->level)
        reserve /= RESERVE_PART;
    return left >= reserve + more;
}

/* A change of the probes of an IOC. */
typedef struct {
    const ebpfMonGovernor *g;
    ebpfMonTarget *t;
    const ebpfMonFilter *filter;
    ebpfMonLevel level; /* as the kernel part is told; off: it is told nothing */
    ebpfMonAttachWay way;
    int      isFull;    /* its table of IOCs */
    char     note[EBPFMON_NOTE_SIZE]; /* what attaching had to say */
} change;

/* Tells the kernel part what is so from now on. */
static void tellKernel(change *c)
{
    struct ebpfMonTargetConf conf;

    if (c->level == ebpfMonLevelOff)
        return;
    fillTargetConf(&conf, c->t, c->level, c->filter);
    ebpfMonTargetsLock(c->g->targets);
    c->t->turn = conf.untimed ? 0 : conf.turn;
    ebpfMonTargetsUnlock(c->g->targets);
    c->isFull |= c->g->kernel.setTarget((uint32_t)c->t->pid, &conf) != 0;
}

/* Attaches these probes and removes the others. The kernel part is told before what will not be seen any more, and
 * afterwards what is seen: the ends of chains whose locks the probes of puts announce, and whom threads of pvxs
 * serve. */
static uint32_t setProbes(change *c, uint32_t want)
{
    ebpfMonTarget *t = c->t;
    uint32_t on;

    tellKernel(c);
    on = c->g->kernel.attach(&t->followed->att, want, c->way, c->note, sizeof(c->note));
    t->followed->probes.isPutLockSeen = ebpfMonAttachIsPutLockSeen(&t->followed->att, on);
    if (!t->followed->probes.serving && (on & EBPFMON_BIT(ebpfMonProgServe))) {
        if (++t->followed->probes.servings == 0)
            t->followed->probes.servings = 1;
        t->followed->probes.serving = t->followed->probes.servings;
    }
    tellKernel(c);
    return on;
}

/* Before the probes of puts are attached or go: as soon as the first put comes, the event thread must know that a
 * result will follow; and not all puts are seen inside until publishLevel says so. "was": the probes that stay, if they
 * are wanted. */
static void announcePuts(const ebpfMonGovernor *g, ebpfMonTarget *t, uint32_t want, uint32_t was)
{
    int begins = (want & PUT_WAYS) && !(t->probesOn & PUT_WAYS);

    ebpfMonTargetsLock(g->targets);
    ebpfMonTargetSetProbes(t, t->probesOn | (want & (PUT_WAYS | EBPFMON_BIT(ebpfMonProgPutReturn))));
    if ((want & was & PUT_WAYS) != PUT_WAYS)
        t->putsSince = UINT64_MAX;
    ebpfMonTargetsUnlock(g->targets);
    if (begins)
        ebpfMonTargetsNoteChange(g->targets);
}

/* What other threads are to know of it. */
static void publishLevel(const ebpfMonGovernor *g, ebpfMonTarget *t, ebpfMonLevel level)
{
    ebpfMonTargetsLock(g->targets);
    ebpfMonTargetSetProbes(t, t->followed->att.on);
    t->queuesSince = t->followed->probes.queuesSince;
    if ((t->probesOn & PUT_WAYS) != PUT_WAYS)
        t->putsSince = UINT64_MAX;
    else if (t->putsSince == UINT64_MAX)
        t->putsSince = g->kernel.now();
    t->level = level;
    t->way = t->followed->att.way;
    t->sweeps = t->followed->sweep.number && !t->followed->sweep.ends;
    ebpfMonTargetsUnlock(g->targets);
}

/* The number of slow passes, after which all chains are timed for a while (turns.h). Not while the IOC is over its
 * budget. */
static uint64_t countSlow(const ebpfMonTarget *t)
{
    return t->followed->budget.timed < 100 ? EBPFMON_TURNS_NO_DEMAND : t->followed->sweep.slowItself;
}

/* The scheduler's tracepoints cost the whole host a little, so they are attached only while an IOC is at level trace,
 * or "on": will be at once. */
static void watchScheduler(const ebpfMonGovernor *g, int on)
{
    for (const ebpfMonTarget *t = ebpfMonTargetsGetFirst(g->targets); t; t = t->next)
        on |= !t->gone && t->level == ebpfMonLevelTrace;
    g->kernel.watchScheduler(on);
}

static void setNote(change *c)
{
    int isRemark;

    if (c->isFull)
        snprintf(c->note, sizeof(c->note), "no room for one more IOC in the kernel's table: watch fewer IOCs");
    isRemark = ebpfMonLevelChoiceWriteNote(c->t, c->filter, c->note);
    if (c->note[0] || ebpfMonLevelChoiceHasPlace(c->t))
        ebpfMonTargetSetNote(c->g->targets, c->t, c->note, isRemark);
    else
        ebpfMonTargetSetNote(c->g->targets, c->t, c->t->note, 0); /* it says why its records found no room */
}

int ebpfMonGovernorTriesSweeps(const ebpfMonTarget *t, uint64_t now)
{
    return !t->gone && t->slot != UINT32_MAX && !t->followed->sweep.number && now >= t->followed->sweep.tryAt &&
           ebpfMonLevelChoiceFindSweepProbes(t, t->level, t->followed->att.way, t->followed->att.on);
}

/* The probes that watch passes of scan lists, if passes can be watched now. 0: chains are watched. */
static uint32_t findSweeps(const ebpfMonGovernor *g, ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way,
                           uint32_t want)
{
    uint32_t sweeps = ebpfMonLevelChoiceFindSweepProbes(t, level, way, want);
    uint64_t now = g->kernel.now();

    if (!sweeps || t->followed->sweep.lost || t->followed->sweep.number)
        return t->followed->sweep.lost ? 0 : sweeps;
    if (now < t->followed->sweep.tryAt)
        return 0;
    t->followed->sweep.serial = !t->followed->att.callers.scansNow && !ebpfMonProcHasThread(t->pid, "cb*-[0-9]*");
    if (ebpfMonRecordTablesBeginSweeps(g->tables, t)) {
        t->followed->sweep.pause = t->followed->sweep.pause ? 2 * t->followed->sweep.pause : TRY_NS;
        t->followed->sweep.tryAt = now + t->followed->sweep.pause;
        return 0;
    }
    t->followed->sweep.pause = 0;
    t->followed->sweep.tryAt = now + TRY_NS; /* if they are lost */
    return sweeps;
}

/* While passes are watched: the probes that see the ends of chains are on, too. Which of them are not needed? */
static uint32_t findIdle(const ebpfMonTarget *t, ebpfMonLevel level)
{
    if (level == ebpfMonLevelCounts)
        return EBPFMON_BIT(ebpfMonProgPassCount);
    return t->followed->timing.turns.isOpen ? 0 : EBPFMON_BIT(ebpfMonProgPassNext);
}

/* Changes to passes, or back to chains. Both are watched until no processing is left that only one of them would
 * show. */
static uint32_t attachSweeps(change *c, uint32_t want, uint32_t sweeps)
{
    const uint32_t chains = want & (EBPFMON_BIT(ebpfMonProgPassCount) | EBPFMON_BIT(ebpfMonProgPassNext));
    const ebpfMonGovernor *g = c->g;
    ebpfMonTarget *t = c->t;
    ebpfMonTurns *turns = &t->followed->timing.turns;
    uint64_t now = g->kernel.now();
    uint32_t on;

    if (sweeps) {
        int isNew = (t->followed->att.on & sweeps) != sweeps;

        on = setProbes(c, want | sweeps);
        if ((on & sweeps) == sweeps) {
            if (isNew) { /* there may have been puts to SCAN since the lists were read, and nobody saw them */
                t->followed->sweep.isScanPutSeen = 1;
                tellKernel(c);
                ebpfMonRecordTablesRenewSweeps(g->tables, t);
                t->followed->sweep.since = g->kernel.now(); /* all is as the kernel part has it, from now on */
            }
            t->followed->sweep.ends = 0;
            if (!turns->lookedAt) {
                ebpfMonTurnsBegin(turns, now, (uint64_t)t->pid);
                t->followed->timing.timedBefore = -1;
            }
            ebpfMonTurnsLook(turns, now, ebpfMonLevelChoiceFindPercent(t, c->filter), countSlow(t));
            t->followed->timing.untimed |= !!(findIdle(t, c->level) & EBPFMON_BIT(ebpfMonProgPassNext));
            return setProbes(c, (want | sweeps) & ~findIdle(t, c->level));
        }
        t->followed->sweep.broken = 1;
    }
    turns->lookedAt = 0;
    sweeps = ebpfMonAttachSweeps(&t->followed->att);
    on = setProbes(c, want | (t->followed->att.on & sweeps));
    if ((chains && !(on & chains)) || !ebpfMonRecordTablesSettleSweeps(g->tables, t, g->kernel.now()))
        return on;
    return setProbes(c, want);
}

/* The probes for this level; if too few files are left for them, for the level in force, or for none: half of its
 * probes would tell half of the truth. */
static uint32_t findAffordable(ebpfMonTarget *t, ebpfMonLevel *level, ebpfMonAttachWay way)
{
    uint32_t want = findProbes(t, *level, way, &t->followed->timing.parallel);

    t->followed->probes.noFiles = !hasFiles(t, *level, want);
    if (t->followed->probes.noFiles && t->followed->att.on && t->level < *level) {
        *level = t->level;
        want = findProbes(t, *level, way, &t->followed->timing.parallel);
    }
    if (!t->followed->probes.noFiles || hasFiles(t, *level, want))
        return want;
    *level = ebpfMonLevelOff;
    return 0;
}

/* Measures the cost anew: other probes are attached now. */
static void beginCost(const ebpfMonGovernor *g, ebpfMonTarget *t)
{
    struct ebpfMonHits hits;

    g->kernel.getHits((uint32_t)t->pid, &hits);
    ebpfMonCostSampleBegin(t, &hits, g->kernel.now());
    ebpfMonBudgetBeginMean(&t->followed->budget);
}

/* After the change: passes may have ended, chains of scan lists may be timed, as their probe is attached. The kernel
 * part knows it first; the way to count changes afterwards. */
static void endChange(change *c, uint32_t on)
{
    ebpfMonTarget *t = c->t;
    int end = t->followed->sweep.number && !(on & EBPFMON_BIT(ebpfMonProgListEnd));

    if (end && !t->followed->sweep.lost)
        t->followed->sweep.tryAt = 0; /* another level was asked for: the next can watch them at once */
    if (end)
        t->followed->sweep.number = 0;
    if (on & EBPFMON_BIT(ebpfMonProgPassNext))
        t->followed->timing.untimed = 0;
    tellKernel(c);
    if (end)
        ebpfMonRecordTablesEndSweeps(c->g->tables, t);
}

/* Longer than others: what is done before, between and after the changes of probes must keep its order, which is to be
 * seen in one place. */
void ebpfMonGovernorApplyLevel(const ebpfMonGovernor *g, ebpfMonTarget *t, ebpfMonLevel wanted, int reference,
                               const ebpfMonFilter *filter)
{
    uint32_t was = t->followed->att.on, want, on, sweeps;
    change c = { .g = g, .t = t, .filter = filter };
    ebpfMonLevel level;
    int isFirst, turns = (wanted == ebpfMonLevelOff) != (t->wantedLevel == ebpfMonLevelOff);

    ebpfMonTargetsLock(g->targets);
    t->wantedLevel = wanted;
    t->cost.limit = filter->budget;
    ebpfMonTargetsUnlock(g->targets);
    if (turns)
        ebpfMonTargetsNoteChange(g->targets); /* packets are read before its first put is seen inside, and not long
                                               * after the last one */
    t->followed->probes.reference = reference;
    level = ebpfMonLevelChoiceFind(t);
    c.way = ebpfMonAttachFindWay(&t->followed->att, t->followed->probes.hasLists);
    want = findAffordable(t, &level, c.way);
    c.level = level > ebpfMonLevelOff || t->gone ? level : t->level;
    if (c.way != t->followed->att.way)
        was = 0; /* all of them go, and others come */
    /* if the ends of chains are seen already, also before the probes are attached that see the other begins */
    t->followed->probes.isPutLockSeen = (was & EBPFMON_BIT(ebpfMonProgUnlock)) &&
        ebpfMonAttachIsPutLockSeen(&t->followed->att, was | (want & EBPFMON_BIT(ebpfMonProgLock)));
    isFirst = !!(want & ~was & EBPFMON_BIT(ebpfMonProgUnlock));
    if (isFirst)
        ebpfMonRecordTablesBeginCounting(g->tables, t, t->followed->records.counted);
    t->followed->records.counted |= isFirst;
    if (isFirst && (want & ~was & EBPFMON_BIT(ebpfMonProgCompleted)))
        ebpfMonRecordTablesSetTrap(g->tables, t, 1, 1); /* while both counters stand still */
    if (want & ~was & EBPFMON_BIT(ebpfMonProgCallback))
        t->followed->probes.queuesSince = g->kernel.now();
    t->followed->timing.inTurns = level == ebpfMonLevelChains &&
                                 t->followed->att.core->calls && !t->followed->att.core->calls->endsOtherwise;
    sweeps = findSweeps(g, t, level, c.way, want);
    if (!(was & EBPFMON_BIT(ebpfMonProgPassNext))) {
        t->followed->timing.untimed = 1;
        if (++t->followed->timing.number == 0)
            t->followed->timing.number = 1;
    }
    if (level == ebpfMonLevelTrace) /* before the first chain: else it would seem that its thread never slept */
        watchScheduler(g, 1);
    if (want & ~was & EBPFMON_BIT(ebpfMonProgLock))
        g->kernel.removeThreads(t->pid); /* locks that were taken when we looked last are long released. Before the
                                          * programs get a level at which they note locks */
    if (!(want & was & EBPFMON_BIT(ebpfMonProgServe)))
        t->followed->probes.serving = 0; /* what threads of pvxs told before is not true any more: they go on unseen */
    announcePuts(g, t, want, was);
    if (t->followed->sweep.number && level >= ebpfMonLevelCounts && c.way == t->followed->att.way)
        on = attachSweeps(&c, want, sweeps);
    else
        on = setProbes(&c, want);
    if (on & EBPFMON_BIT(ebpfMonProgUnlock))
        ebpfMonRecordTablesSettleCounting(g->tables, t);
    endChange(&c, on);
    publishLevel(g, t, level);
    if (level == ebpfMonLevelOff && on == 0)
        g->kernel.removeTarget((uint32_t)t->pid);
    if (isFirst ? !(on & EBPFMON_BIT(ebpfMonProgCompleted)) : (was ^ on) & EBPFMON_BIT(ebpfMonProgCompleted))
        ebpfMonRecordTablesSetTrap(g->tables, t, !!(on & EBPFMON_BIT(ebpfMonProgCompleted)), 0);
    watchScheduler(g, 0);
    setNote(&c);
    if (was != on) {
        beginCost(g, t);
        ebpfMonTargetsNoteChange(g->targets);
    }
}

double ebpfMonGovernorTakeTurn(const ebpfMonGovernor *g, ebpfMonTarget *t, const ebpfMonFilter *filter, uint64_t now)
{
    ebpfMonTurns *turns = &t->followed->timing.turns;
    const uint32_t next = EBPFMON_BIT(ebpfMonProgPassNext), on = t->followed->att.on;
    change c = { .g = g, .t = t, .filter = filter, .level = t->level, .way = t->followed->att.way };
    int inTurns = !t->gone && t->level == ebpfMonLevelChains && t->sweeps;

    if (inTurns && ebpfMonTurnsLook(turns, now, ebpfMonLevelChoiceFindPercent(t, filter), countSlow(t))) {
        if (turns->isOpen && ++t->followed->timing.number == 0)
            t->followed->timing.number = 1;
        t->followed->timing.untimed = 1;
        endChange(&c, setProbes(&c, turns->isOpen ? on | next : on & ~next));
    }
    ebpfMonTargetsLock(g->targets);
    ebpfMonTargetSetProbes(t, t->followed->att.on);
    t->timed = inTurns ? ebpfMonTurnsShare(turns) : t->level >= ebpfMonLevelChains ? 100 : NAN;
    t->slowUntimed = t->followed->sweep.slow;
    ebpfMonTargetsUnlock(g->targets);
    return inTurns ? ebpfMonTurnsWait(turns, now) : HUGE_VAL;
}

/* Nonzero: it is known now whether the functions of a stripped IOC are what they seem to be. */
static int tryFunctions(const ebpfMonGovernor *g, ebpfMonTarget *t, uint64_t strange)
{
    ebpfMonFunctionTrial *trial = &t->followed->functions;

    if (!t->image.core->isStripped || t->slot == UINT32_MAX || trial->verdict != ebpfMonFunctionsOpen ||
        !ebpfMonFunctionTrialLook(trial, strange, ebpfMonTargetCountSnapshots(t)))
        return 0;
    if (trial->verdict == ebpfMonFunctionsWrong)
        ebpfMonRecordTablesMarkMissed(g->tables, t);
    return 1;
}

int ebpfMonGovernorCheckBudget(const ebpfMonGovernor *g, ebpfMonTarget *t, const ebpfMonFilter *filter, uint64_t now)
{
    struct ebpfMonHits hits;
    ebpfMonCostSample sample;
    ebpfMonCostSpent spent;
    int changed, isTried;

    g->kernel.getHits((uint32_t)t->pid, &hits);
    changed = ebpfMonCostSampleTake(g->costs, t, filter, &hits, now, &spent, &sample);
    isTried = tryFunctions(g, t, spent.strange);
    if (!changed)
        return isTried;
    changed = ebpfMonBudgetAddSample(&t->followed->budget, &sample);
    ebpfMonTargetsLock(g->targets);
    t->cost.now = t->followed->budget.cost;
    t->cost.traps = spent.traps;
    t->cost.cold = spent.cold;
    ebpfMonTargetsUnlock(g->targets);
    return changed || isTried;
}
