/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables, as the user part writes them, counts and marks. */
#include <string.h>

#include "common/maps.bpf.h"
#include "explore.h"
#include "userOwn.h"
#include "userPart.h"

#pragma clang section bss = ""

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

/* --- counts ----------------------------------------------------------------------------------------------------- */

/* target.c, ebpfMonTargetAddPasses(), of one record */
static uint64_t countPasses(int bank, unsigned index)
{
    const Stretches *s = &user->stretch[bank];
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
    return helpersState[i].count + user->adjust[i] + countPasses(0, i) + countPasses(1, i);
}

void userMark(unsigned i)
{
    user->isMissed[i] = 1;
}

static void markAll(void)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        userMark(i);
}

static void markReached(unsigned i)
{
    const Closures *c = &user->closures;

    for (uint32_t k = 0; k < c->len[i]; k++)
        userMark(c->list[c->first[i] + k]);
}

/* recordSweeps.c, takeMissed() */
void userReadMarks(void)
{
    uint32_t tgid = HELPERS_TGID;
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    if (!notes)
        return;
    if (notes->missed != user->missed || notes->stuck)
        markAll();
    if (notes->unsure != user->unsure)
        for (unsigned i = 0; i < iocOne->count; i++)
            if (helpersState[i].unsure) {
                helpersState[i].unsure = 0;
                markReached(i);
            }
    user->missed = notes->missed;
    user->unsure = notes->unsure;
}

int userIsMarked(unsigned i)
{
    return user->isMissed[i];
}

/* --- tables ----------------------------------------------------------------------------------------------------- */

static void setSingle(int isOn)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        helpersConf[i].flags = isOn ? EBPFMON_REC_SINGLE : 0;
}

void userBeginChange(void)
{
    setSingle(1);
    waitForWalks();
}

void userEndChange(void)
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
        if (userOrder(known) > userOrder(was))
            __atomic_compare_exchange_n(&st->time, &was, known, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        st->last = last;
    }
}

/* closureTable.c, ebpfMonClosureTableInstall() */
void userInstall(const Closures *c)
{
    uint32_t bank = !user->bank, at;
    Stretches *s = &user->stretch[bank];

    for (unsigned i = 0; i < iocOne->count; i++)
        user->adjust[i] += countPasses((int)bank, i);
    for (unsigned i = 0; i < iocOne->count; i++)
        helpersState[i].pass[bank] = 0;
    s->isUsed = !user->sweeps;
    for (unsigned p = 0; p < iocOne->count; p++) {
        s->order[p] = c->list[p];
        s->ahead[c->list[p]] = c->ahead[p];
    }
    user->bank = bank;
    user->area = (user->area + 1) % 3;
    at = user->closureAt = user->area * AREA;
    for (uint32_t p = 0; p < c->count; p++)
        helpersClosure[at + p] = EBPFMON_ENTRY(c->list[p], p >= iocOne->count || s->isUsed ? c->ahead[p] : 0, bank);
    for (unsigned i = 0; i < iocOne->count; i++) {
        /* first and len in one store */
        *(uint64_t *)&helpersConf[i].first = (uint64_t)c->len[i] << 32 | (at + c->first[i]);
    }
    setLast(s);
    user->closures = *c;
}

/* sweeps.c, ebpfMonSweepsWrite() */
void userWriteSweeps(const Closures *c)
{
    for (unsigned l = 0; l < iocOne->listCount; l++) {
        struct ebpfMonListKey key = { (uintptr_t)iocOne->list[l].mutex, HELPERS_TGID };
        struct ebpfMonList list = { .first = user->closureAt + c->listFirst[l], .len = c->listLen[l] };

        bpf_map_update_elem(&lists, &key, &list, BPF_ANY);
    }
    for (unsigned i = 0; i < iocOne->count; i++) {
        uint8_t head = c->group[i];

        helpersConf[i].groupFirst = user->closureAt + c->groupFirst[head];
        helpersConf[i].groupLen = c->groupLen[head];
    }
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];
        uint32_t was = st->group, head = c->group[i];

        if (was == head)
            continue;
        st->group = head;
        if (user->hasPlan && helpersState[was].inside & (EBPFMON_INSIDE_COUNT | EBPFMON_INSIDE_SKIPPED))
            userMark(i);
    }
    user->hasPlan = 1;
}

/* recordTables.c, ebpfMonRecordTablesBeginCounting() */
void userBeginCounting(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        struct ebpfMonRecState *st = &helpersState[i];

        st->time = iocOne->record[i].time;
        st->pending = 0;
        st->noted = iocOne->record[i].pact ? EBPFMON_NOTED_BUSY : 0;
    }
}

/* recordTables.c, forgetCompleted() */
void userSettleCounting(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        uint8_t was = EBPFMON_NOTED_BUSY;

        if (helpersState[i].noted == EBPFMON_NOTED_BUSY && !iocOne->record[i].pact)
            __atomic_compare_exchange_n(&helpersState[i].noted, &was, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* recordSweeps.c, userMarkMoved() */
void userMarkMoved(void)
{
    for (unsigned i = 0; i < iocOne->count; i++) {
        const iocElement *e = iocOne->record[i].spvt;
        uint8_t list = e && e->list ? (uint8_t)(e->list - iocOne->list) : NONE;

        if (user->hasPlan && user->listOf[i] != list)
            markReached(i);
        user->listOf[i] = list;
    }
}

/* recordSweeps.c, ebpfMonRecordTablesRenewSweeps() */
void userRenewSweeps(void)
{
    Closures *c = &user->closures;

    userMakeClosures(c, 1);
    userMarkMoved();
    userBeginChange();
    userInstall(c);
    userWriteSweeps(c);
    userEndChange();
}
