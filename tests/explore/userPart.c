/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "common/maps.bpf.h"
#include "explore.h"
#include "userOwn.h"
#include "userPart.h"

#pragma clang section bss = ""

User *user;

/* --- programs --------------------------------------------------------------------------------------------------- */

static void setConf(void)
{
    uint32_t tgid = HELPERS_TGID;

    bpf_map_update_elem(&targets, &tgid, &user->conf, BPF_ANY);
}

static void setPlaces(iocProgram p, int isOn)
{
    for (unsigned c = 0; c < iocCallerCount; c++)
        iocOne->attached[p][c] = (uint8_t)isOn; /* kernel: a place after the other */
}

/* attach.c, ebpfMonAttachSet(): attaches in the reverse order of the enum, then detaches in its order. */
static void attach(uint32_t want)
{
    for (int p = iocProgramCount - 1; p >= 0; p--)
        if (want & IOC_BIT(p) && !iocOne->attached[p][iocCallerCount - 1])
            setPlaces((iocProgram)p, 1);
    for (int p = 0; p < iocProgramCount; p++)
        if (!(want & IOC_BIT(p)) && iocOne->attached[p][iocCallerCount - 1])
            setPlaces((iocProgram)p, 0);
}

#define PUTS   (IOC_BIT(iocPut) | IOC_BIT(iocPutReturn) | IOC_BIT(iocPutField))
#define COUNTS (PUTS | IOC_BIT(iocUnlock) | IOC_BIT(iocProcessCall) | IOC_BIT(iocUnlockMany))
#define CHAINS (COUNTS | IOC_BIT(iocLock) | IOC_BIT(iocPassBegin))
#define SWEEPS (IOC_BIT(iocListEnd) | IOC_BIT(iocLocked) | IOC_BIT(iocAskMany) | IOC_BIT(iocPassBegin))

static uint32_t findChainProbes(void)
{
    return user->level == USER_COUNTS ? COUNTS | IOC_BIT(iocPassCount) : CHAINS | IOC_BIT(iocPassNext);
}

/* levelChoice.c, ebpfMonLevelChoiceFindSweepProbes() */
static uint32_t findSweepProbes(void)
{
    return user->level == USER_COUNTS ? SWEEPS | IOC_BIT(iocAsk) : SWEEPS;
}

/* --- levels ----------------------------------------------------------------------------------------------------- */

void userMake(int isOneCpu)
{
    uint32_t zero = 0;

    user = exploreAlloc(sizeof(*user));
    exploreName(user, sizeof(*user), sizeof(*user), "user");
    helpersMakeTables(isOneCpu);
    user->conf = (struct ebpfMonTargetConf){
        .iocId = 1, .sample = 1,
        .time = offsetof(iocRecord, time), .pact = offsetof(iocRecord, pact), .lset = offsetof(iocRecord, lset),
        .ppn = offsetof(iocRecord, ppn), .disp = offsetof(iocRecord, disp),
        .sevr = offsetof(iocRecord, sevr), .stat = offsetof(iocRecord, stat),
        .spvt = offsetof(iocRecord, spvt), .phas = offsetof(iocRecord, phas), .proc = offsetof(iocRecord, proc),
        .tse = offsetof(iocRecord, tse), .turn = 1,
    };
    user->conf.zero = zero;
    for (uint32_t i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecKey key = { .tgid = HELPERS_TGID, .precord = (uintptr_t)&iocOne->record[i] };

        helpersState[i].addr = (uintptr_t)&iocOne->record[i];
        helpersState[i].last = i;
        helpersState[i].time = iocOne->record[i].time;
        helpersState[i].seen = 1;
        helpersConf[i].valOff = offsetof(iocRecord, val);
        *(uint32_t *)helpersElement(&recIndex, &key) = i;
        userReadLinks(i);
    }
    for (uint32_t number = 1; number < 9; number++)
        bpf_map_push_elem(&freeRoots, &number, BPF_ANY);
    userMakeClosures(&user->closures, 0);
    userInstall(&user->closures);
}

static void setPutLocks(int sees)
{
    if (user->conf.isPutLockSeen == sees)
        return;
    user->conf.isPutLockSeen = (uint8_t)sees;
    setConf();
}

/* governor.c, ebpfMonGovernorApplyLevel() */
void userBeginChains(int level)
{
    int isFirst = !iocOne->attached[iocUnlock][iocOther];

    if (isFirst)
        userBeginCounting();
    user->level = level;
    user->conf.level = level == USER_COUNTS ? EBPFMON_COUNTS : EBPFMON_CHAINS;
    user->conf.untimed = 0;
    setConf();
    attach(findChainProbes());
    setPutLocks(level == USER_CHAINS);
    userSettleCounting();
}

/* recordSweeps.c, ebpfMonRecordTablesBeginSweeps(); governor.c, attachSweeps() */
void userBeginPasses(void)
{
    static const struct ebpfMonPassNotes none;
    uint32_t tgid = HELPERS_TGID, idle = IOC_BIT(iocPassCount) | IOC_BIT(iocPassNext);

    bpf_map_update_elem(&passNotes, &tgid, &none, BPF_ANY);
    user->sweeps = ++user->number;
    user->missed = user->unsure = user->puts = 0;
    user->conf.putsTaken = 0;
    user->conf.sweepsSince = exploreNow();
    user->conf.isScanPutSeen = 0;
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];

        st->inside = 0;
        st->early = st->unsure = 0;
    }
    userMakeClosures(&user->closures, 1);
    userMarkMoved();
    userBeginChange();
    userInstall(&user->closures);
    userWriteSweeps(&user->closures);
    userEndChange();
    user->conf.sweeps = user->sweeps;
    setConf();
    attach(findChainProbes() | findSweepProbes());
    setPutLocks(1);
    user->conf.isScanPutSeen = 1;
    setConf();
    userRenewSweeps();
    user->conf.sweepsSince = exploreNow();
    user->conf.untimed |= user->level == USER_CHAINS;
    setConf();
    attach((findChainProbes() | findSweepProbes()) & ~idle);
}


/* sweeps.c, ebpfMonSweepsAreSettled() */
static int areSettled(void *arg)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        const struct ebpfMonRecState *st = &helpersState[i];
        const iocRecord *r = &iocOne->record[i];

        if (helpersState[st->group].inside & EBPFMON_INSIDE_SKIPPED ||
            (!r->pact && userOrder(r->time) > userOrder(st->time)))
            return 0;
    }
    return 1;
}

/* governor.c, attachSweeps() without "sweeps", and endChange(); recordSweeps.c, ebpfMonRecordTablesEndSweeps() */
void userEndPasses(void)
{
    attach(findChainProbes() | findSweepProbes());
    user->conf.untimed = 0;
    setConf();
    if (exploreSelf() >= 0)
        exploreWait(areSettled, NULL);
    attach(findChainProbes());
    setPutLocks(user->level == USER_CHAINS);
    user->sweeps = user->conf.sweeps = 0;
    setConf();
    for (unsigned l = 0; l < iocOne->listCount; l++) {
        struct ebpfMonListKey key = { (uintptr_t)iocOne->list[l].mutex, HELPERS_TGID };

        bpf_map_delete_elem(&lists, &key);
    }
    user->hasPlan = 0;
    userReadMarks();
    userMakeClosures(&user->closures, 0);
    userBeginChange();
    userInstall(&user->closures);
    userEndChange();
}

void userEnd(void)
{
    uint32_t tgid = HELPERS_TGID;

    attach(0);
    user->sweeps = 0;
    bpf_map_delete_elem(&targets, &tgid);
}

/* governor.c, ebpfMonGovernorTakeTurn() */
void userSetTurn(int isTimed)
{
    uint32_t on = (findChainProbes() | findSweepProbes()) & ~IOC_BIT(iocPassNext);

    if (isTimed)
        user->conf.turn++;
    user->conf.untimed = 1;
    setConf();
    attach(isTimed ? on | IOC_BIT(iocPassNext) : on);
    if (!isTimed)
        return;
    user->conf.untimed = 0;
    setConf();
}

void userLetTimePass(void)
{
    user->conf.sweepsSince = 1;
    setConf();
}

void userLetLittleTimePass(void)
{
    user->conf.sweepsSince = exploreNow() - 1000000000;
    setConf();
}

void userDoubt(void)
{
    stretchPuts[ebpfMonShareOf(user->conf.iocId)] = exploreNow();
}

/* --- links that change ------------------------------------------------------------------------------------------ */

static int hasChanged(void *arg)
{
    unsigned i = *(unsigned *)arg;

    return userIndexOf(iocOne->record[i].flnk) != user->flnk[i];
}

/* recordMarks.c, ebpfMonRecordTablesMarkReached(): what the record reaches, without itself. What it reached before is
 * marked, too, but not here: a link that is removed is to lose no count. */
static void markBehind(const Closures *c, unsigned index)
{
    for (uint32_t k = 0; k < c->len[index]; k++)
        if (c->list[c->first[index] + k] != index)
            userMark(c->list[c->first[index] + k]);
}

/* recordTables.c, ebpfMonRecordTablesUpdateLinks() */
void userFollowLink(unsigned index)
{
    Closures c;

    exploreWait(hasChanged, &index);
    userReadLinks(index);
    userMakeClosures(&c, user->sweeps != 0);
    markBehind(&c, index);
    userBeginChange();
    userInstall(&c);
    if (user->sweeps)
        userWriteSweeps(&c);
    userEndChange();
}

static int hasMoved(void *arg)
{
    const struct ebpfMonPassNotes *notes = arg;

    return notes->putsBegun != user->puts && notes->putsBegun == notes->putsDone;
}

/* recordSweeps.c, ebpfMonRecordTablesFollowSweeps() */
void userFollowLists(void)
{
    uint32_t tgid = HELPERS_TGID;
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    exploreWait(hasMoved, notes);
    userReadMarks();
    user->puts = notes->putsBegun;
    userRenewSweeps();
    user->conf.putsTaken = user->puts;
    setConf();
}

/* --- what must be at the end ------------------------------------------------------------------------------------ */

static void checkThread(const void *key, void *value)
{
    const struct thread *th = value;

    if (th->seen.heldCount || th->putDepth)
        exploreFail("thread %u seems to hold %u lock sets, and to be in %u puts",
                    *(const uint32_t *)key - HELPERS_TGID - 1, th->seen.heldCount, th->putDepth);
}

static void checkGroupThread(const void *key, void *value)
{
    const struct groupThread *gt = value;

    if (gt->insideCount && gt->inside[0].sweeps == user->sweeps)
        exploreFail("thread %u seems to be in %u groups", *(const uint32_t *)key - HELPERS_TGID - 1, gt->insideCount);
}

static void checkLost(const void *key, void *value)
{
    if (*(uint64_t *)value)
        exploreFail("%u times something was lost for reason %u", (unsigned)*(uint64_t *)value, *(const uint32_t *)key);
}

void userCheckTraps(uint64_t traps)
{
    uint32_t zero = 0;
    const struct ebpfMonHits *h = bpf_map_lookup_elem(&hits, &zero);

    if (h->n[EBPFMON_HIT_ENTRY] + h->n[EBPFMON_HIT_RETURN] != traps)
        exploreFail("programs ran %u times, and %u are counted", (unsigned)traps,
                    (unsigned)(h->n[EBPFMON_HIT_ENTRY] + h->n[EBPFMON_HIT_RETURN]));
}

void userCheckIdle(void)
{
    helpersForEach(&lost, checkLost);
    for (unsigned i = 0; i < iocOne->count; i++) {
        const struct ebpfMonRecState *st = &helpersState[i];
        uint32_t inside = user->sweeps ? st->inside : 0;

        if (inside & EBPFMON_INSIDE_COUNT)
            exploreFail("%u threads seem to be in the group of %s", inside & EBPFMON_INSIDE_COUNT,
                        iocOne->record[i].name);
        if (inside & EBPFMON_INSIDE_SKIPPED)
            exploreFail("the group of %s was left out, and nobody has looked at it", iocOne->record[i].name);
        if (st->pending && !iocOne->record[i].pact)
            exploreFail("%s seems to be pending", iocOne->record[i].name);
    }
    if (iocOne->attached[iocLocked][iocOther])
        helpersForEach(&groupThreads, checkGroupThread);
    if (iocOne->attached[iocLock][iocOther])
        helpersForEach(&threads, checkThread);
}
