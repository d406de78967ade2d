/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/governor.h, with its budget: this process as an IOC, a kernel part that notes what is asked of it, and a clock
 * that the test moves. What each probe costs depends on how often the test hits it. */
#include <math.h>
#include <sys/resource.h>

#include <testMain.h>

#include "recordTablesTest.h"
#include "watch/followed.h"
#include "watch/governor.h"

#define SECOND  1000000000ull
#define TRAP_NS 1000
#define ALL_PUTS (EBPFMON_BIT(ebpfMonProgPut) | EBPFMON_BIT(ebpfMonProgPutField) | EBPFMON_BIT(ebpfMonProgPutReturn))

static struct {
    uint64_t now;
    unsigned perSecond[ebpfMonProgCount]; /* how often the IOC runs into each probe */
    uint64_t traps;
    uint32_t refused;   /* probes that cannot be attached */
    int      tableFull;
    int      hasConf;   /* the IOC is in the kernel part's table */
    int      watchesScheduler;
    unsigned threadsRemoved;
    iocRecord *processes; /* this record does, while the next probes are attached */
    struct ebpfMonTargetConf conf;
    struct {            /* what was so when probes were attached last, or were taken off */
        int      hasConf, watchesScheduler, isPutLockSeen;
        uint16_t level, serving;
        uint32_t probesOn;
        uint64_t putsSince;
        unsigned threadsRemoved;
    } atAttach;
} kernel;

static ebpfMonBinary core;
static ebpfMonFilter filter;
static ebpfMonGovernor own;
static const ebpfMonGovernor *governor = &own;
static ebpfMonTarget *target;

static uint64_t getNow(void)
{
    return kernel.now;
}

static int setTarget(uint32_t tgid, const struct ebpfMonTargetConf *c)
{
    if (kernel.tableFull || tgid != (uint32_t)getpid())
        return -1;
    kernel.conf = *c;
    kernel.hasConf = 1;
    return 0;
}

static void removeTarget(uint32_t tgid)
{
    kernel.hasConf &= tgid != (uint32_t)getpid();
}

static void removeThreads(pid_t pid)
{
    kernel.threadsRemoved += pid == getpid();
}

static void getHits(uint32_t tgid, struct ebpfMonHits *hits)
{
    memset(hits, 0, sizeof(*hits));
    hits->n[EBPFMON_HIT_ENTRY] = tgid == (uint32_t)getpid() ? kernel.traps : 0;
}

static void watchScheduler(int on)
{
    kernel.watchesScheduler = on;
}

static uint32_t attach(ebpfMonAttached *att, uint32_t want, ebpfMonAttachWay way, char *note, size_t size)
{
    kernel.atAttach.hasConf = kernel.hasConf;
    kernel.atAttach.watchesScheduler = kernel.watchesScheduler;
    kernel.atAttach.level = kernel.conf.level;
    kernel.atAttach.isPutLockSeen = kernel.conf.isPutLockSeen;
    kernel.atAttach.serving = kernel.conf.serving;
    kernel.atAttach.probesOn = target->probesOn;
    kernel.atAttach.putsSince = target->putsSince;
    kernel.atAttach.threadsRemoved = kernel.threadsRemoved;
    snprintf(note, size, "%s", want & kernel.refused ? "cannot be probed" : "");
    att->way = way;
    if (kernel.processes)
        kernel.processes->time++;
    kernel.processes = NULL;
    return att->on = want & ~kernel.refused;
}

static void apply(ebpfMonLevel wanted)
{
    ebpfMonGovernorApplyLevel(governor, target, wanted, 0, &filter);
}

/* An IOC whose iocInit is done and whose code is known. It is watched at level off. */
static void beginIoc(void)
{
    memset(&kernel, 0, sizeof(kernel));
    kernel.now = 1000 * SECOND;
    memset(&core, 0, sizeof(core));
    for (int fn = 0; fn < ebpfMonFnCount; fn++)
        core.site[fn].cls = ebpfMonSiteFast;
    filter = ebpfMonFilterDefault;
    filter.budget = 1;
    target = makeIoc();
    target->image.core = &core;
    target->putsSince = UINT64_MAX;
    ebpfMonAttachInit(&target->followed->att, target->pid, &target->image, 0);
    ebpfMonBudgetInit(&target->followed->budget);
    ebpfMonRecordTablesAdd(recordTables, target);
}

static void endIoc(void)
{
    apply(ebpfMonLevelOff);
    freeIoc(target);
}

static void passSecond(void)
{
    kernel.now += SECOND;
    for (int i = 0; i < ebpfMonProgCount; i++)
        if (target->followed->att.on & EBPFMON_BIT(i))
            kernel.traps += kernel.perSecond[i];
    if (ebpfMonGovernorCheckBudget(governor, target, &filter, kernel.now))
        apply(target->wantedLevel);
}

/* Seconds until the IOC is watched at this level; -1: longer than "most". */
static int waitLevel(ebpfMonLevel level, int most)
{
    for (int i = 0; i <= most; i++, passSecond())
        if (target->level == level)
            return i;
    return -1;
}

static void testOrder(void)
{
    size_t changes;

    testDiag("what is done before, with and after the probes");
    beginIoc();
    changes = ebpfMonTargetsCountChanges(targets);
    apply(ebpfMonLevelChains);
    testOk(target->level == ebpfMonLevelChains && target->wantedLevel == ebpfMonLevelChains && !target->note[0] &&
           target->probesOn == target->followed->att.on, "other threads see the level and the probes");
    testOk(kernel.atAttach.hasConf && kernel.atAttach.level == EBPFMON_CHAINS,
           "the kernel part has the configuration before the first probe is attached");
    testOk(kernel.atAttach.probesOn & EBPFMON_BIT(ebpfMonProgPutReturn),
           "the event thread waits for results before the first put comes");
    testOk(kernel.atAttach.putsSince == UINT64_MAX && target->putsSince == kernel.now,
           "all puts are seen only when all probes are attached");
    testOk(kernel.atAttach.threadsRemoved == 1, "locks that were seen before are forgotten before");
    testOk(ebpfMonTargetsCountChanges(targets) > changes, "a change is announced");
    kernel.now += SECOND;
    apply(ebpfMonLevelCounts);
    testOk(target->putsSince == kernel.now - SECOND, "another level does not interrupt the puts");
    apply(ebpfMonLevelTrace);
    testOk(kernel.atAttach.watchesScheduler, "at level trace the scheduler is watched before the first chain");
    apply(ebpfMonLevelChains);
    testOk(kernel.atAttach.watchesScheduler && !kernel.watchesScheduler, "... and until the last one");
    apply(ebpfMonLevelOff);
    testOk(kernel.atAttach.hasConf && !kernel.hasConf && target->followed->att.on == 0,
           "the configuration goes after the last probe");
    testOk(target->level == ebpfMonLevelOff && target->putsSince == UINT64_MAX && target->probesOn == 0,
           "at level off no put is seen");
    apply(ebpfMonLevelChains);
    target->gone = 1;
    apply(ebpfMonLevelChains);
    testOk(target->level == ebpfMonLevelOff && target->followed->att.on == 0 && !kernel.hasConf,
           "an IOC that has ended has no probes");
    endIoc();
}

static void testRefused(void)
{
    testDiag("what the kernel does not give");
    beginIoc();
    kernel.refused = EBPFMON_BIT(ebpfMonProgPutField);
    apply(ebpfMonLevelPuts);
    testOk(target->putsSince == UINT64_MAX && strcmp(target->note, "cannot be probed") == 0,
           "not all puts are seen without one of the two probes; \"%s\"", target->note);
    kernel.refused = 0;
    apply(ebpfMonLevelPuts);
    testOk(target->putsSince == kernel.now && !target->note[0], "... and they are as soon as it is attached");
    kernel.tableFull = 1;
    apply(ebpfMonLevelCounts);
    testOk(strstr(target->note, "no room for one more IOC") != NULL, "\"%s\"", target->note);
    endIoc();
}

/* The entry of dbPutField() tells which lock it requests. */
static void testPutLocks(void)
{
    static const ebpfMonCalls calls = { .putFieldLocks = 1 };
    ebpfMonFeatures before = ebpfMonFeature;

    testDiag("locks of dbPutField()");
    beginIoc();
    ebpfMonFeature.uprobeMulti = 1;
    core.calls = &calls;
    target->followed->att.callers.complete = 1;
    apply(ebpfMonLevelChains);
    testOk(!kernel.atAttach.isPutLockSeen && kernel.conf.isPutLockSeen,
           "they are noted only when their release is seen, too");
    apply(ebpfMonLevelCounts);
    testOk(!kernel.conf.isPutLockSeen, "at level counts, chains are not");
    apply(ebpfMonLevelChains);
    testOk(kernel.atAttach.isPutLockSeen && kernel.conf.isPutLockSeen,
           "... and then at once, because their releases are seen already");
    apply(ebpfMonLevelOff);
    kernel.refused = EBPFMON_BIT(ebpfMonProgPut);
    apply(ebpfMonLevelChains);
    testOk(!kernel.conf.isPutLockSeen, "without dbPut() nothing tells that they were taken");
    endIoc();
    ebpfMonFeature = before;
}

/* A thread of pvxs may have served others while it had no probe, so what it told before is not believed. */
static void testServing(void)
{
    uint16_t before;

    testDiag("which client a thread of pvxs serves");
    beginIoc();
    apply(ebpfMonLevelPuts);
    testOk(!kernel.atAttach.serving && kernel.conf.serving, "it is seen once the probe is there");
    before = kernel.conf.serving;
    apply(ebpfMonLevelCounts);
    testOk(kernel.atAttach.serving == before && kernel.conf.serving == before, "... and goes on to be");
    apply(ebpfMonLevelOff);
    testOk(!kernel.atAttach.serving, "it is not seen any more before the probe goes");
    apply(ebpfMonLevelPuts);
    testOk(!kernel.atAttach.serving && kernel.conf.serving && kernel.conf.serving != before,
           "the next time has a new number");
    kernel.refused = EBPFMON_BIT(ebpfMonProgServe);
    apply(ebpfMonLevelOff);
    apply(ebpfMonLevelPuts);
    testOk(!kernel.conf.serving, "it is not seen without the probe");
    endIoc();
}

static void setFiles(rlim_t files)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = files;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A quarter of the files stays for clients, packets and logs. */
static void testFiles(void)
{
    struct rlimit before;

    testDiag("too few files");
    getrlimit(RLIMIT_NOFILE, &before);
    beginIoc();
    setFiles(10);
    apply(ebpfMonLevelChains);
    testOk(target->level == ebpfMonLevelOff && target->followed->att.on == 0 &&
           strstr(target->note, "not watched: too few"),
           "an IOC is not watched with half of its probes: \"%s\"", target->note);
    setFiles(before.rlim_cur);
    apply(ebpfMonLevelCounts);
    setFiles(10);
    apply(ebpfMonLevelChains);
    testOk(target->level == ebpfMonLevelCounts && strstr(target->note, "watched at level counts: too few"),
           "an IOC that is watched stays at its level: \"%s\"", target->note);
    setFiles(before.rlim_cur);
    apply(ebpfMonLevelChains);
    testOk(target->level == ebpfMonLevelChains && !target->note[0], "it is watched as asked for when there are files");
    endIoc();
}

/* Chains cost 1.2 % of one core, counts 0.6 %, and the limit is 1 %. */
static void testBudget(void)
{
    int seconds;

    testDiag("an IOC that costs more than its budget");
    beginIoc();
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 6000;
    apply(ebpfMonLevelChains);
    seconds = waitLevel(ebpfMonLevelCounts, 100);
    testOk(seconds == 18 && target->followed->budget.noTrap,
           "first the trap of one record goes, then the level is lowered: after %d s", seconds);
    testOk(strstr(target->note, "over its budget of 1 %: watched at level counts") && !target->remark, "\"%s\"",
           target->note);
    testOk(target->followed->att.on & ALL_PUTS && !(target->followed->att.on & EBPFMON_BIT(ebpfMonProgLock)),
           "the dear probe is gone, those of puts are there");
    for (int i = 0; i < 5; i++)
        passSecond();
    testOk(fabs(target->cost.now - 0.6) < 0.02 && fabs(target->cost.traps - 6000) < 1,
           "it costs %g %% then, by %g traps a second", target->cost.now, target->cost.traps);
    testOk(waitLevel(ebpfMonLevelChains, 3600) == -1, "it stays so for an hour: above half of its budget");
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 1000;
    testOk(waitLevel(ebpfMonLevelChains, 200) >= 0, "when the IOC does less, the level goes up again");
    for (int i = 0; i < 7200 && (!i || target->level == ebpfMonLevelChains); i++)
        passSecond();
    testOk(target->level == ebpfMonLevelChains && !target->note[0] && !target->followed->budget.noTrap,
           "... and stays, with all that was taken away");
    endIoc();
}

/* Counts cost a quarter of the limit, so chains are tried again and again; these cost twice the limit. */
static void testNoOscillation(void)
{
    unsigned changes = 0, above = 0, hours = 12;
    ebpfMonLevel before;

    testDiag("an IOC whose next level always costs too much");
    beginIoc();
    kernel.perSecond[ebpfMonProgLock] = 17500;
    kernel.perSecond[ebpfMonProgUnlock] = 2500;
    apply(ebpfMonLevelChains);
    for (unsigned i = 0; i < hours * 3600; i++) {
        before = target->level;
        passSecond();
        changes += target->level != before;
        above += target->cost.now > filter.budget;
    }
    testOk(changes <= 2 * (6 + hours), "in %u hours its level changed %u times", hours, changes);
    testOk(above < hours * 3600 / 100, "it cost more than its budget for %u s", above);
    testOk(target->followed->att.on & EBPFMON_BIT(ebpfMonProgPut) && target->putsSince == 1000 * SECOND,
           "no put was missed for that");
    filter.budget = 0;
    passSecond();
    testOk(target->level == ebpfMonLevelChains && !target->note[0],
           "without a limit it is watched as asked for at once");
    endIoc();
}

/* The budget, or an operator, lowers the level, and it rises again. */
static void testInterruption(void)
{
    testDiag("counting is interrupted");
    beginIoc();
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 50000;
    apply(ebpfMonLevelCounts);
    testOk(waitLevel(ebpfMonLevelPuts, 100) >= 3, "an IOC of which even counts cost too much is watched for puts");
    record[5].time = stamp(1000);
    ebpfMonMemFlush(target->followed->mem);
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 0;
    testOk(waitLevel(ebpfMonLevelCounts, 200) > 0 && ebpfMonTargetIsAtLeast(target, 5) &&
           !ebpfMonTargetIsAtLeast(target, 4), "a record that processed meanwhile is marked, and no other one");
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 50000;
    waitLevel(ebpfMonLevelPuts, 100);
    ebpfMonMemFlush(target->followed->mem);
    kernel.perSecond[ebpfMonProgLock] = kernel.perSecond[ebpfMonProgUnlock] = 0;
    kernel.processes = &record[2];
    testOk(waitLevel(ebpfMonLevelCounts, 400) > 0 && ebpfMonTargetIsAtLeast(target, 2) &&
           !ebpfMonTargetIsAtLeast(target, 4), "one that processed while the probes were attached again is marked");
    kernel.processes = &record[4];
    apply(ebpfMonLevelChains);
    testOk(!ebpfMonTargetIsAtLeast(target, 4), "it was, if probes were attached to others");
    apply(ebpfMonLevelPuts);
    record[4].time = stamp(1000);
    ebpfMonMemFlush(target->followed->mem);
    apply(ebpfMonLevelCounts);
    testOk(ebpfMonTargetIsAtLeast(target, 4), "it is marked, too, if an operator asked for level puts");
    endIoc();
}

MAIN(testGovernor)
{
    /* with what the caches lose (probe/calibrate.c) it is TRAP_NS */
    static const ebpfMonCosts costs = { .entryNs = TRAP_NS / 1.75, .returnNs = TRAP_NS / 1.75,
                                        .steppedNs = 10 * TRAP_NS };
    const ebpfMonRecordTablesKernel tablesKernel = {
        .tables = &tables, .setRecordIndex = setRecordIndex, .removeRecordIndex = removeRecordIndex,
        .setArray = setArray, .removeArray = removeArray, .takeRoot = takeRoot,
        .removeRoots = removeRoots, .removeAsyncs = removeAsyncs, .removeLists = removeLists,
    };
    const ebpfMonGovernorKernel governorKernel = {
        .now = getNow, .setTarget = setTarget, .removeTarget = removeTarget, .removeThreads = removeThreads,
        .getHits = getHits, .watchScheduler = watchScheduler, .attach = attach,
    };

    testPlan(12 + 3 + 4 + 5 + 3 + 7 + 4 + 5);
    ebpfMonFeature.loop = 1; /* the kernel part can exchange a time stamp with the user part of the monitor */
    tables = (ebpfMonTables){ .conf = conf, .state = state, .closure = closure,
                              .size = { .maxRecords = MAX_RECORDS, .maxClosure = MAX_CLOSURE } };
    targets = ebpfMonTargetsNew();
    recordTables = ebpfMonRecordTablesNew(targets, ebpfMonAuditsNew(), &tablesKernel);
    own = (ebpfMonGovernor){ targets, recordTables, &costs, governorKernel };
    if (!targets || !recordTables)
        testAbort("out of memory");
    testOrder();
    testRefused();
    testPutLocks();
    testServing();
    testFiles();
    testBudget();
    testNoOscillation();
    testInterruption();
    ebpfMonRecordTablesFree(recordTables);
    ebpfMonTargetsFree(targets);
    return testDone();
}
