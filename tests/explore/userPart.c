/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <string.h>

#include "ebpfMonBase.h"
#include "ebpfMonTable.h"
#include "common/maps.bpf.h"
#include "explore.h"
#include "helpers.h"
#include "ioc.h"
#include "userPart.h"

#pragma clang section bss = ""

#define N    IOC_RECORDS_MAX
#define NONE 255
#define AREA (PLACES_MAX / 3) /* places of a set of closures: the present one, the one before, the next one */

/* The closures of all records, then the lists, then the groups, and where they are. */
typedef struct {
    uint32_t count;
    uint8_t list[AREA], ahead[AREA];
    uint32_t first[N], len[N];
    uint32_t listFirst[IOC_LISTS_MAX], listLen[IOC_LISTS_MAX];
    uint8_t group[N];
    uint32_t groupFirst[N], groupLen[N];
} Closures;

/* The stretches of chains: of one bank. */
typedef struct {
    int isUsed;
    uint8_t order[N], ahead[N];
} Stretches;

/* Only the thread of the user part uses it, but it must be as it was at the begin of each run: so it is shared memory. */
typedef struct {
    struct ebpfMonTargetConf conf;
    int level;
    uint32_t sweeps, number, area, closureAt, bank;
    int hasPlan;
    uint64_t missed, unsure; /* of struct ebpfMonPassNotes, as they were read last */
    uint64_t puts;           /* ebpfMonPassNotes.putsBegun when the lists were read last */
    uint8_t flnk[N], out[N]; /* links as they were read; NONE: empty */
    uint8_t listOf[N];       /* the list of each record; NONE: none */
    uint64_t adjust[N];
    uint8_t isMissed[N];
    Stretches stretch[2];
    Closures closures;
} User;

static User *u;

/* --- programs --------------------------------------------------------------------------------------------------- */

static void setConf(void)
{
    uint32_t tgid = HELPERS_TGID;

    bpf_map_update_elem(&targets, &tgid, &u->conf, BPF_ANY);
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
#define COUNTS (PUTS | IOC_BIT(iocUnlock) | IOC_BIT(iocUnlockMany))
#define CHAINS (COUNTS | IOC_BIT(iocLock) | IOC_BIT(iocPassBegin))
#define SWEEPS (IOC_BIT(iocListEnd) | IOC_BIT(iocLocked) | IOC_BIT(iocAskMany) | IOC_BIT(iocPassBegin))

static uint32_t findChainProbes(void)
{
    return u->level == USER_COUNTS ? COUNTS | IOC_BIT(iocPassCount) : CHAINS | IOC_BIT(iocPassNext);
}

/* levelChoice.c, ebpfMonLevelChoiceFindSweepProbes() */
static uint32_t findSweepProbes(void)
{
    return u->level == USER_COUNTS ? SWEEPS | IOC_BIT(iocAsk) : SWEEPS;
}

typedef struct {
    uint32_t runs[EXPLORE_THREADS_MAX];
} Walks;

/* Nonzero: no program goes on that was running then. */
static int haveEnded(void *arg)
{
    const Walks *w = arg;

    for (unsigned i = 0; i < EXPLORE_THREADS_MAX; i++)
        if (w->runs[i] & 1 && iocOne->running[i] == w->runs[i])
            return 0;
    return 1;
}

/* closureTable.c, waitForWalks() */
static void waitForWalks(void)
{
    Walks w;

    if (exploreSelf() < 0)
        return;
    memcpy(w.runs, iocOne->running, sizeof(w.runs));
    exploreWait(haveEnded, &w);
}

/* --- links, closures -------------------------------------------------------------------------------------------- */

static uint8_t indexOf(const iocRecord *r)
{
    return r ? (uint8_t)(r - iocOne->record) : NONE;
}

static void readLinks(unsigned i)
{
    u->flnk[i] = indexOf(iocOne->record[i].flnk);
    u->out[i] = indexOf(iocOne->record[i].out);
}

static int isIn(const uint8_t *list, uint32_t from, uint32_t to, uint8_t i)
{
    while (from < to && list[from] != i)
        from++;
    return from < to;
}

/* Appends all that a record reaches, itself first, and what is not there from "from" on. "isPass": a link processes a
 * passive record only. */
static void addReached(Closures *c, uint32_t from, unsigned i, int isPass)
{
    if (isIn(c->list, from, c->count, (uint8_t)i))
        return;
    c->list[c->count++] = (uint8_t)i;
    if (u->out[i] != NONE && !(isPass && iocOne->record[u->out[i]].scan))
        addReached(c, from, u->out[i], isPass);
    if (u->flnk[i] != NONE && !(isPass && iocOne->record[u->flnk[i]].scan))
        addReached(c, from, u->flnk[i], isPass);
}

static unsigned countCauses(uint8_t i)
{
    unsigned n = 0;

    for (unsigned k = 0; k < iocOne->count; k++)
        n += (u->flnk[k] == i) + (u->out[k] == i);
    return n;
}

/* closureTable.c, ebpfMonClosureTableMakeStretches(). "at": the first place of the order, "n": so many. */
static void findStretches(Closures *c, uint32_t at, uint32_t n, int isPass)
{
    for (uint32_t p = n; p-- > 0;) {
        uint8_t v = c->list[at + p], w = u->flnk[v];

        c->ahead[at + p] = 0;
        if (w != NONE && p + 1 < n && c->list[at + p + 1] == w && u->out[v] == NONE && countCauses(w) == 1 &&
            !(isPass && iocOne->record[w].scan))
            c->ahead[at + p] = (uint8_t)(c->ahead[at + p + 1] + 1);
    }
}

static uint8_t findHead(uint8_t *group, uint8_t i)
{
    while (group[i] != i)
        i = group[i];
    return i;
}

static void join(uint8_t *group, unsigned i, uint8_t to)
{
    if (to != NONE)
        group[findHead(group, to)] = findHead(group, (uint8_t)i);
}

/* sweepPlan.c */
static void makePlan(Closures *c)
{
    uint32_t swept = c->count, end;

    for (unsigned l = 0; l < iocOne->listCount; l++) {
        c->listFirst[l] = c->count;
        for (iocElement *e = iocOne->list[l].first; e; e = e->next)
            addReached(c, swept, indexOf(e->precord), 1);
        c->listLen[l] = c->count - c->listFirst[l];
    }
    end = c->count;
    findStretches(c, swept, end - swept, 1);
    for (unsigned i = 0; i < iocOne->count; i++)
        c->group[i] = (uint8_t)i;
    for (unsigned i = 0; i < iocOne->count; i++) {
        join(c->group, i, u->flnk[i]);
        join(c->group, i, u->out[i]);
        join(c->group, i, indexOf(iocOne->record[i].inp));
    }
    for (unsigned i = 0; i < iocOne->count; i++)
        c->group[i] = findHead(c->group, (uint8_t)i);
    for (unsigned i = 0; i < iocOne->count; i++) {
        c->groupFirst[i] = c->count; /* of a record that is no head: an empty one */
        for (uint32_t p = swept; p < end; p++)
            if (c->group[c->list[p]] == i)
                c->list[c->count++] = c->list[p];
        c->groupLen[i] = c->count - c->groupFirst[i];
    }
}

/* ioc/closure.c: an order of all, of which the closure of a record is a part; or it has a list of its own behind. */
static void makeClosures(Closures *c, int withPlan)
{
    memset(c, 0, sizeof(*c));
    for (unsigned i = 0; i < iocOne->count; i++)
        if (!countCauses((uint8_t)i))
            addReached(c, 0, i, 0);
    findStretches(c, 0, c->count, 0);
    for (uint32_t p = 0; p < iocOne->count; p++) {
        uint32_t own = c->count, len;
        uint8_t i = c->list[p];

        addReached(c, own, i, 0);
        len = c->count - own;
        c->len[i] = len;
        c->first[i] = own;
        if (p + len <= iocOne->count && !memcmp(c->list + p, c->list + own, len)) {
            c->first[i] = p;
            c->count = own;
        }
    }
    if (withPlan)
        makePlan(c);
}

/* --- counts ----------------------------------------------------------------------------------------------------- */

static uint64_t order(uint64_t time)
{
    return time << 32 | time >> 32;
}

/* target.c, ebpfMonTargetAddPasses(), of one record */
static uint64_t countPasses(int bank, unsigned index)
{
    const Stretches *s = &u->stretch[bank];
    uint64_t sum = 0;

    for (unsigned p = 0; s->isUsed && p < iocOne->count; p++) {
        uint8_t r = s->order[p];

        if (!p || !s->ahead[s->order[p - 1]] || s->ahead[s->order[p - 1]] != s->ahead[r] + 1)
            sum = 0;
        if (!s->ahead[r])
            continue;
        sum += helpersState[r].pass[bank];
        if (r == index)
            return sum;
    }
    return 0;
}

uint64_t userCount(unsigned i)
{
    return helpersState[i].count + u->adjust[i] + countPasses(0, i) + countPasses(1, i);
}

static void mark(unsigned i)
{
    u->isMissed[i] = 1;
}

static void markAll(void)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        mark(i);
}

static void markReached(unsigned i)
{
    const Closures *c = &u->closures;

    for (uint32_t k = 0; k < c->len[i]; k++)
        mark(c->list[c->first[i] + k]);
}

/* recordSweeps.c, takeMissed() */
void userReadMarks(void)
{
    uint32_t tgid = HELPERS_TGID;
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    if (!notes)
        return;
    if (notes->missed != u->missed || notes->stuck)
        markAll();
    if (notes->unsure != u->unsure)
        for (unsigned i = 0; i < iocOne->count; i++)
            if (helpersState[i].unsure) {
                helpersState[i].unsure = 0;
                markReached(i);
            }
    u->missed = notes->missed;
    u->unsure = notes->unsure;
}

int userIsMarked(unsigned i)
{
    return u->isMissed[i];
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static void setSingle(int isOn)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        helpersConf[i].flags = isOn ? EBPFMON_REC_SINGLE : 0;
}

static void beginChange(void)
{
    setSingle(1);
    waitForWalks();
}

static void endChange(void)
{
    setSingle(0);
}

/* closureTable.c, setLast() */
static void setLast(const Stretches *s)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];
        __u64 was = st->time, known;
        uint32_t last = i;

        for (unsigned p = 0; s->isUsed && p < iocOne->count; p++)
            if (s->order[p] == i)
                last = s->order[p + s->ahead[i]];
        if (st->last == last)
            continue;
        known = helpersState[st->last].time;
        if (order(known) > order(was))
            __atomic_compare_exchange_n(&st->time, &was, known, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        st->last = last;
    }
}

/* closureTable.c, ebpfMonClosureTableInstall() */
static void install(const Closures *c)
{
    uint32_t bank = !u->bank, at;
    Stretches *s = &u->stretch[bank];

    for (unsigned i = 0; i < iocOne->count; i++)
        u->adjust[i] += countPasses((int)bank, i);
    for (unsigned i = 0; i < iocOne->count; i++)
        helpersState[i].pass[bank] = 0;
    s->isUsed = !u->sweeps;
    for (unsigned p = 0; p < iocOne->count; p++) {
        s->order[p] = c->list[p];
        s->ahead[c->list[p]] = c->ahead[p];
    }
    u->bank = bank;
    u->area = (u->area + 1) % 3;
    at = u->closureAt = u->area * AREA;
    for (uint32_t p = 0; p < c->count; p++)
        helpersClosure[at + p] = EBPFMON_ENTRY(c->list[p], p >= iocOne->count || s->isUsed ? c->ahead[p] : 0, bank);
    for (unsigned i = 0; i < iocOne->count; i++) {
        /* first and len in one store */
        *(uint64_t *)&helpersConf[i].first = (uint64_t)c->len[i] << 32 | (at + c->first[i]);
    }
    setLast(s);
    u->closures = *c;
}

/* sweeps.c, ebpfMonSweepsWrite() */
static void writeSweeps(const Closures *c)
{
    for (unsigned l = 0; l < iocOne->listCount; l++) {
        struct ebpfMonListKey key = { (uintptr_t)iocOne->list[l].mutex, HELPERS_TGID };
        struct ebpfMonList list = { .first = u->closureAt + c->listFirst[l], .len = c->listLen[l] };

        bpf_map_update_elem(&lists, &key, &list, BPF_ANY);
    }
    for (unsigned i = 0; i < iocOne->count; i++) {
        uint8_t head = c->group[i];

        helpersConf[i].groupFirst = u->closureAt + c->groupFirst[head];
        helpersConf[i].groupLen = c->groupLen[head];
    }
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];
        uint32_t was = st->group, head = c->group[i];

        if (was == head)
            continue;
        st->group = head;
        if (u->hasPlan && helpersState[was].inside & (EBPFMON_INSIDE_COUNT | EBPFMON_INSIDE_SKIPPED))
            mark(i);
    }
    u->hasPlan = 1;
}

/* recordTables.c, ebpfMonRecordTablesBeginCounting() */
static void beginCounting(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];

        st->time = iocOne->record[i].time;
        st->pending = 0;
        st->noted = iocOne->record[i].pact ? EBPFMON_NOTED_BUSY : 0;
    }
}

/* recordTables.c, forgetCompleted() */
static void settleCounting(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        uint8_t was = EBPFMON_NOTED_BUSY;

        if (helpersState[i].noted == EBPFMON_NOTED_BUSY && !iocOne->record[i].pact)
            __atomic_compare_exchange_n(&helpersState[i].noted, &was, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* recordSweeps.c, markMoved() */
static void markMoved(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        const iocElement *e = iocOne->record[i].spvt;
        uint8_t list = e && e->list ? (uint8_t)(e->list - iocOne->list) : NONE;

        if (u->hasPlan && u->listOf[i] != list)
            markReached(i);
        u->listOf[i] = list;
    }
}

/* recordSweeps.c, ebpfMonRecordTablesRenewSweeps() */
static void renewSweeps(void)
{
    Closures *c = &u->closures;

    makeClosures(c, 1);
    markMoved();
    beginChange();
    install(c);
    writeSweeps(c);
    endChange();
}

/* --- levels ----------------------------------------------------------------------------------------------------- */

void userMake(int isOneCpu)
{
    uint32_t zero = 0;

    u = exploreAlloc(sizeof(*u));
    exploreName(u, sizeof(*u), sizeof(*u), "user");
    helpersMakeTables(isOneCpu);
    u->conf = (struct ebpfMonTargetConf){
        .iocId = 1, .sample = 1,
        .time = offsetof(iocRecord, time), .pact = offsetof(iocRecord, pact), .lset = offsetof(iocRecord, lset),
        .ppn = offsetof(iocRecord, ppn), .disp = offsetof(iocRecord, disp), .sevr = offsetof(iocRecord, sevr), .stat = offsetof(iocRecord, stat),
        .spvt = offsetof(iocRecord, spvt), .phas = offsetof(iocRecord, phas), .proc = offsetof(iocRecord, proc),
        .tse = offsetof(iocRecord, tse), .turn = 1,
    };
    u->conf.zero = zero;
    for (uint32_t i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecKey key = { .tgid = HELPERS_TGID, .precord = (uintptr_t)&iocOne->record[i] };

        helpersState[i].addr = (uintptr_t)&iocOne->record[i];
        helpersState[i].last = i;
        helpersState[i].time = iocOne->record[i].time;
        helpersState[i].seen = 1;
        helpersConf[i].valOff = offsetof(iocRecord, val);
        *(uint32_t *)helpersElement(&recIndex, &key) = i;
        readLinks(i);
    }
    for (uint32_t number = 1; number < 9; number++)
        bpf_map_push_elem(&freeRoots, &number, BPF_ANY);
    makeClosures(&u->closures, 0);
    install(&u->closures);
}

static void setPutLocks(int sees)
{
    if (u->conf.seesPutLocks == sees)
        return;
    u->conf.seesPutLocks = (uint8_t)sees;
    setConf();
}

/* governor.c, ebpfMonGovernorApplyLevel() */
void userBeginChains(int level)
{
    int isFirst = !iocOne->attached[iocUnlock][iocOther];

    if (isFirst)
        beginCounting();
    u->level = level;
    u->conf.level = level == USER_COUNTS ? EBPFMON_COUNTS : EBPFMON_CHAINS;
    u->conf.untimed = 0;
    setConf();
    attach(findChainProbes());
    setPutLocks(level == USER_CHAINS);
    settleCounting();
}

/* recordSweeps.c, ebpfMonRecordTablesBeginSweeps(); governor.c, attachSweeps() */
void userBeginPasses(void)
{
    static const struct ebpfMonPassNotes none;
    uint32_t tgid = HELPERS_TGID, idle = IOC_BIT(iocPassCount) | IOC_BIT(iocPassNext);

    bpf_map_update_elem(&passNotes, &tgid, &none, BPF_ANY);
    u->sweeps = ++u->number;
    u->missed = u->unsure = u->puts = 0;
    u->conf.putsTaken = 0;
    u->conf.sweepsSince = exploreNow();
    u->conf.seesScanPuts = 0;
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];

        st->inside = 0;
        st->early = st->unsure = 0;
    }
    makeClosures(&u->closures, 1);
    markMoved();
    beginChange();
    install(&u->closures);
    writeSweeps(&u->closures);
    endChange();
    u->conf.sweeps = u->sweeps;
    setConf();
    attach(findChainProbes() | findSweepProbes());
    setPutLocks(1);
    u->conf.seesScanPuts = 1;
    setConf();
    renewSweeps();
    u->conf.sweepsSince = exploreNow();
    setConf();
    if (u->level == USER_CHAINS) {
        u->conf.untimed = 1;
        setConf();
    }
    attach((findChainProbes() | findSweepProbes()) & ~idle);
}


/* sweeps.c, ebpfMonSweepsAreSettled() */
static int areSettled(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < iocOne->count; i++) {
        const struct ebpfMonRecState *st = &helpersState[i];
        const iocRecord *r = &iocOne->record[i];

        if (helpersState[st->group].inside & EBPFMON_INSIDE_SKIPPED || (!r->pact && order(r->time) > order(st->time)))
            return 0;
    }
    return 1;
}

/* governor.c, attachSweeps() without "sweeps", and endSweeps(); recordSweeps.c, ebpfMonRecordTablesEndSweeps() */
void userEndPasses(void)
{
    attach(findChainProbes() | findSweepProbes());
    u->conf.untimed = 0;
    setConf();
    if (exploreSelf() >= 0)
        exploreWait(areSettled, NULL);
    attach(findChainProbes());
    setPutLocks(u->level == USER_CHAINS);
    u->sweeps = u->conf.sweeps = 0;
    setConf();
    for (unsigned l = 0; l < iocOne->listCount; l++) {
        struct ebpfMonListKey key = { (uintptr_t)iocOne->list[l].mutex, HELPERS_TGID };

        bpf_map_delete_elem(&lists, &key);
    }
    u->hasPlan = 0;
    userReadMarks();
    makeClosures(&u->closures, 0);
    beginChange();
    install(&u->closures);
    endChange();
}

void userEnd(void)
{
    uint32_t tgid = HELPERS_TGID;

    attach(0);
    u->sweeps = 0;
    bpf_map_delete_elem(&targets, &tgid);
}

/* governor.c, ebpfMonGovernorTakeTurn() */
void userSetTurn(int isTimed)
{
    uint32_t on = (findChainProbes() | findSweepProbes()) & ~IOC_BIT(iocPassNext);

    if (isTimed)
        u->conf.turn++;
    u->conf.untimed = 1;
    setConf();
    attach(isTimed ? on | IOC_BIT(iocPassNext) : on);
    if (!isTimed)
        return;
    u->conf.untimed = 0;
    setConf();
}

void userLetTimePass(void)
{
    u->conf.sweepsSince = 1;
    setConf();
}

void userLetLittleTimePass(void)
{
    u->conf.sweepsSince = exploreNow() - 1000000000;
    setConf();
}

void userDoubt(void)
{
    stretchPuts[ebpfMonShareOf(u->conf.iocId)] = exploreNow();
}

/* --- links that change ------------------------------------------------------------------------------------------ */

/* linkChange.c, isMissed() */
static int isMissed(unsigned i, uint64_t since)
{
    const struct ebpfMonRecState *st = &helpersState[i];
    const iocRecord *r = &iocOne->record[i];
    uint64_t was = st->time, time;

    if (!st->pending) {
        time = r->time;
        if (order(time) > order(was) && order(time) > order(helpersState[st->last].time))
            return 1;
    }
    return st->stamp >= since || helpersState[st->last].stamp >= since;
}

static int hasChanged(void *arg)
{
    unsigned i = *(unsigned *)arg;

    return indexOf(iocOne->record[i].flnk) != u->flnk[i];
}

static void markNew(const uint8_t *isNew, uint64_t since)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        if (isNew[i] && isMissed(i, since))
            mark(i);
}

/* recordTables.c, ebpfMonRecordTablesUpdateLinks() */
void userFollowLink(unsigned index)
{
    const Closures *before = &u->closures;
    uint8_t isNew[N] = { 0 };
    uint64_t since;
    Closures c;

    exploreWait(hasChanged, &index);
    since = iocOne->linkPutAt;
    readLinks(index);
    makeClosures(&c, u->sweeps != 0);
    for (uint32_t k = 0; k < c.len[index]; k++)
        isNew[c.list[c.first[index] + k]] = 1;
    for (uint32_t k = 0; k < before->len[index]; k++)
        isNew[before->list[before->first[index] + k]] = 0;
    beginChange();
    markNew(isNew, since);
    install(&c);
    if (u->sweeps)
        writeSweeps(&c);
    markNew(isNew, since);
    endChange();
}

static int hasMoved(void *arg)
{
    const struct ebpfMonPassNotes *notes = arg;

    return notes->putsBegun != u->puts && notes->putsBegun == notes->putsDone;
}

/* recordSweeps.c, ebpfMonRecordTablesFollowSweeps() */
void userFollowLists(void)
{
    uint32_t tgid = HELPERS_TGID;
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    exploreWait(hasMoved, notes);
    userReadMarks();
    u->puts = notes->putsBegun;
    renewSweeps();
    u->conf.putsTaken = u->puts;
    setConf();
}

/* --- what must be at the end ------------------------------------------------------------------------------------ */

static void checkThread(const void *key, void *value)
{
    const struct thread *th = value;

    (void)key;
    if (th->seen.heldCount || th->putDepth)
        exploreFail("thread %u seems to hold %u lock sets, and to be in %u puts", *(const uint32_t *)key - HELPERS_TGID - 1,
                    th->seen.heldCount, th->putDepth);
}

static void checkGroupThread(const void *key, void *value)
{
    const struct groupThread *gt = value;

    if (gt->insideCount && gt->inside[0].sweeps == u->sweeps)
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
        uint32_t inside = u->sweeps ? st->inside : 0;

        if (inside & EBPFMON_INSIDE_COUNT)
            exploreFail("%u threads seem to be in the group of %s", inside & EBPFMON_INSIDE_COUNT, iocOne->record[i].name);
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
