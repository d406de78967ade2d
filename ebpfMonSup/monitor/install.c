/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <epicsString.h>

#include "monitor/install.h"
#include "monitor/range.h"

static ebpfMonRange *slots, *places;

int ebpfMonInstallInit(unsigned maxRecords, unsigned maxClosure)
{
    slots = ebpfMonRangeNew(maxRecords);
    places = ebpfMonRangeNew(maxClosure);
    return slots && places ? 0 : -1;
}

static ebpfMonClosures *closuresOf(const ebpfMonCatalogue *cat)
{
    uint32_t *start = malloc(((size_t)cat->count + 1) * sizeof(*start)), *to, edges = 0;
    ebpfMonClosures *c;

    if (!start)
        return NULL;
    for (uint32_t i = 0; i < cat->count; i++) {
        start[i] = edges;
        edges += cat->rec[i].toCount;
    }
    start[cat->count] = edges;
    to = malloc(((size_t)edges + 1) * sizeof(*to));
    if (!to) {
        free(start);
        return NULL;
    }
    for (uint32_t i = 0; i < cat->count; i++)
        memcpy(to + start[i], cat->rec[i].to, cat->rec[i].toCount * sizeof(*to));
    /* lists of their own may take three times the room of the order itself */
    c = ebpfMonClosuresMake(cat->count, start, to, cat->count * 4 + 1024, EBPFMON_CLOSURE_MAX);
    free(start);
    free(to);
    return c;
}

/* The stretches of these closures. */
static ebpfMonStretches *stretchesOf(const ebpfMonCatalogue *cat, const ebpfMonClosures *c)
{
    uint32_t n = cat->count, edges = 0;
    uint32_t *start = malloc(((size_t)n + 1) * sizeof(*start)), *fwd = malloc(((size_t)n + 1) * sizeof(*fwd)), *to;
    uint8_t *skip = malloc((size_t)n + 1);
    ebpfMonStretches *s = NULL;

    for (uint32_t i = 0; i < n; i++)
        edges += cat->rec[i].toCount;
    to = malloc(((size_t)edges + 1) * sizeof(*to));
    if (start && fwd && skip && to) {
        edges = 0;
        for (uint32_t i = 0; i < n; i++) {
            start[i] = edges;
            for (uint32_t k = 0; k < cat->rec[i].toCount; k++)
                to[edges++] = cat->rec[i].to[k];
            fwd[i] = cat->rec[i].fwd;
            skip[i] = c->flags[i] || (cat->rec[i].flags & EBPFMON_REC_TSE);
        }
        start[n] = edges;
        s = ebpfMonStretchesMake(n, c->list, start, to, fwd, skip, EBPFMON_STRETCH_MAX);
    }
    free(start);
    free(fwd);
    free(skip);
    free(to);
    return s;
}

/* Makes room in the other bank: what it counted is added up for good. Nobody has counted there since the
 * closures changed the last time. */
static void foldBank(ebpfMonTarget *t, int bank)
{
    const ebpfMonTables *tab = ebpfMonLoaded();

    if (t->stretch[bank])
        for (uint32_t i = 0; i < t->cat->count; i++)
            t->adjust[i] += (int64_t)ebpfMonTargetPasses(t, bank, i);
    for (uint32_t i = 0; i < t->cat->count; i++)
        tab->state[t->slot + i].pass[bank] = 0;
    ebpfMonStretchesFree(t->stretch[bank]);
    t->stretch[bank] = NULL;
}

static uint64_t inOrder(uint64_t time)
{
    return time << 32 | time >> 32; /* epicsTimeStamp: the seconds are in the low half */
}

/* The last record of every record's stretch. A record that leaves a stretch takes along what was known of it
 * by that stretch's last record; the kernel half may be writing its time at this moment. */
static void nameLast(ebpfMonTarget *t, const ebpfMonStretches *stretch)
{
    const ebpfMonTables *tab = ebpfMonLoaded();

    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];
        uint32_t last = t->slot + i;
        uint64_t was = st->time, known;

        if (stretch && stretch->ahead[i])
            last = t->slot + stretch->order[stretch->place[i] + stretch->ahead[i]];
        if (st->last == last)
            continue;
        known = tab->state[st->last].time;
        if (inOrder(known) > inOrder(was))
            __atomic_compare_exchange_n((uint64_t *)&st->time, &was, known, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        st->last = last;
    }
}

/* The new closures into a new part of the table, and only then every record's pointer there. The part
 * before stays until the next change: a walk may be under way in it. */
static int placeClosures(ebpfMonTarget *t, const ebpfMonClosures *c)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    uint32_t at = ebpfMonRangeTake(places, c->count);
    ebpfMonStretches *stretch;
    int bank = !t->bank;

    if (at == UINT32_MAX)
        return -1;
    stretch = stretchesOf(t->cat, c);
    ebpfMonTargetsLock();
    foldBank(t, bank);
    t->stretch[bank] = stretch;
    t->bank = bank;
    ebpfMonTargetsUnlock();
    for (uint32_t i = 0; i < c->count; i++) {
        /* stretches lie together in the order alone, not in the lists of their own behind it */
        unsigned ahead = stretch && i < t->cat->count ? stretch->ahead[c->list[i]] : 0;

        tab->closure[at + i] = EBPFMON_ENTRY(t->slot + c->list[i], ahead, bank);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &tab->conf[t->slot + i];
        union {
            uint64_t both;
            uint32_t part[2];
        } v = { .part = { at + c->first[i], c->len[i] } };

        /* first and len in one store: they are aligned to 8 together */
        __atomic_store_n((uint64_t *)&rc->first, v.both, __ATOMIC_RELEASE);
        rc->flags = t->cat->rec[i].flags & EBPFMON_REC_TSE ? EBPFMON_REC_NOTIME : 0;
    }
    nameLast(t, stretch);
    if (t->oldClosureAt != UINT32_MAX)
        ebpfMonRangeGive(places, t->oldClosureAt, t->oldClosureCount);
    t->oldClosureAt = t->closureAt;
    t->oldClosureCount = t->closureCount;
    t->closureAt = at;
    t->closureCount = c->count;
    return 0;
}

/* Which records want the trap; counts go on where they were. */
static void markRecords(ebpfMonTarget *t, const ebpfMonClosures *c)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    int trap = !!(t->att.on & EBPFMON_BIT(ebpfMonProgCompleted));

    ebpfMonTargetsLock();
    t->trapped = 0;
    for (uint32_t i = 0; i < t->cat->count; i++) {
        int want = (c->flags[i] & EBPFMON_NODE_TWICE) || (t->cat->rec[i].flags & EBPFMON_REC_TSE);
        int was = (t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST)) == EBPFMON_BY_TRAP;
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];

        t->how[i] &= EBPFMON_SHOWN;
        if (want) {
            t->how[i] |= trap ? EBPFMON_BY_TRAP : EBPFMON_BY_TRAP | EBPFMON_AT_LEAST;
            t->trapped++;
        }
        if (was != (want && trap)) /* from the one counter to the other, and the sum stays */
            t->adjust[i] += (int64_t)(was ? st->trapped - st->count : st->count - st->trapped);
    }
    ebpfMonTargetsUnlock();
}

void ebpfMonInstallTrap(ebpfMonTarget *t, int attached)
{
    const ebpfMonTables *tab = ebpfMonLoaded();

    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock();
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];

        if (!(t->how[i] & EBPFMON_BY_TRAP) || attached == !(t->how[i] & EBPFMON_AT_LEAST))
            continue;
        t->how[i] ^= EBPFMON_AT_LEAST;
        t->adjust[i] += (int64_t)(attached ? st->count - st->trapped : st->trapped - st->count);
    }
    ebpfMonTargetsUnlock();
}

static void setArrays(ebpfMonTarget *t, int on)
{
    const ebpfMonCatalogue *cat = t->cat;

    for (uint32_t i = 0; i < cat->fields; i++) {
        const ebpfMonField *f = &cat->field[i];
        struct ebpfMonArrayConf conf = { f->arrayPtr, f->arrayCount };

        if (!f->arrayCount)
            continue;
        if (on)
            ebpfMonArraySet((uint32_t)t->pid, f->addr, &conf);
        else
            ebpfMonArrayDel((uint32_t)t->pid, f->addr);
    }
}

static uint64_t *addresses(const ebpfMonCatalogue *cat)
{
    uint64_t *a = malloc(((size_t)cat->count + 1) * sizeof(*a));

    for (uint32_t i = 0; a && i < cat->count; i++)
        a[i] = cat->rec[i].addr;
    return a;
}

int ebpfMonInstall(ebpfMonTarget *t)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    ebpfMonCatalogue *cat = t->cat;
    ebpfMonClosures *c;
    uint64_t *addr;
    uint32_t slot;
    int rc = -1;

    ebpfMonCatalogueLinks(t->mem, cat, -1);
    slot = ebpfMonRangeTake(slots, cat->count);
    if (slot == UINT32_MAX) {
        snprintf(t->note, sizeof(t->note), "its %u records do not fit any more: raise maxRecords of "
                 "ebpfMonConfigure; puts only", cat->count);
        return -1;
    }
    c = closuresOf(cat);
    addr = addresses(cat);
    ebpfMonTargetsLock();
    t->how = calloc(cat->count + 1, sizeof(*t->how));
    t->adjust = calloc(cat->count + 1, sizeof(*t->adjust));
    t->counts = calloc(cat->count + 1, sizeof(*t->counts));
    t->rate = calloc(cat->count + 1, sizeof(*t->rate));
    t->slot = slot;
    ebpfMonTargetsUnlock();
    if (!c || !addr || !t->how || !t->adjust || !t->counts || !t->rate) {
        snprintf(t->note, sizeof(t->note), "out of memory");
        goto fail;
    }
    for (uint32_t i = 0; i < cat->count; i++) {
        volatile struct ebpfMonRecConf *conf = &tab->conf[slot + i];
        struct ebpfMonRecState st = { .addr = cat->rec[i].addr, .last = slot + i };
        const ebpfMonRecType *rt = &cat->rtype[cat->rec[i].rtype];
        const ebpfMonField *val = rt->valField >= 0 ? &cat->field[rt->valField] : NULL;

        conf->len = 0;
        conf->valOff = val && !val->arrayCount ? val->offset : 0;
        conf->valSize = val ? (uint8_t)(val->size > 16 ? 16 : val->size) : 0;
        st.seen = ebpfMonMemRead(t->mem, cat->rec[i].addr + cat->common.time, &st.time, sizeof(st.time)) == 0;
        memcpy((void *)&tab->state[slot + i], &st, sizeof(st));
    }
    if (placeClosures(t, c)) {
        snprintf(t->note, sizeof(t->note), "its chains do not fit any more: raise maxRecords of "
                 "ebpfMonConfigure; puts only");
        goto fail;
    }
    markRecords(t, c);
    setArrays(t, 1);
    if (ebpfMonRecIndexSet((uint32_t)t->pid, addr, cat->count, slot)) {
        snprintf(t->note, sizeof(t->note), "the table of records is full: raise maxRecords of "
                 "ebpfMonConfigure; puts only");
        goto fail;
    }
    rc = 0;
fail:
    ebpfMonClosuresFree(c);
    free(addr);
    if (rc)
        ebpfMonInstallRemove(t);
    return rc;
}

/* Records that this one reaches now and did not before may have processed since its link was written: once,
 * as far as their time stamps tell. Only them: what could be reached before is accounted for at the end of a
 * chain that may be under way now. */
static void catchUp(ebpfMonTarget *t, const ebpfMonClosures *c, uint32_t index)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    volatile struct ebpfMonRecConf *rc = &tab->conf[t->slot + index];
    uint8_t *before = calloc((size_t)t->cat->count + 1, 1);

    for (uint32_t k = 0; before && k < rc->len; k++) {
        uint32_t r = EBPFMON_ENTRY_SLOT(tab->closure[rc->first + k]) - t->slot;

        if (r < t->cat->count)
            before[r] = 1;
    }
    ebpfMonTargetsLock();
    for (uint32_t k = 0; before && k < c->len[index]; k++) {
        uint32_t r = c->list[c->first[index] + k];
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + r];
        uint64_t was = st->time, time;
        uint8_t pact = 1;

        if (before[r] || (t->how[r] & EBPFMON_BY_TRAP) || st->pending)
            continue;
        if (ebpfMonMemReadNow(t->pid, t->cat->rec[r].addr + t->cat->common.time, &time, sizeof(time)) ||
            ebpfMonMemReadNow(t->pid, t->cat->rec[r].addr + t->cat->common.pact, &pact, sizeof(pact)) || pact ||
            inOrder(time) <= inOrder(was) || inOrder(time) <= inOrder(tab->state[st->last].time))
            continue;
        if (__atomic_compare_exchange_n((uint64_t *)&st->time, &was, time, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            t->adjust[r]++;
    }
    ebpfMonTargetsUnlock();
    free(before);
}

/* Nonzero: the record's links are not what they were. */
static int linksDiffer(ebpfMonTarget *t, uint32_t index)
{
    ebpfMonRecord *r = &t->cat->rec[index], old = *r;
    int same;

    old.to = malloc((old.toCount + 1) * sizeof(*old.to));
    if (!old.to) {
        ebpfMonCatalogueLinks(t->mem, t->cat, index);
        return 1;
    }
    if (old.toCount)
        memcpy(old.to, r->to, old.toCount * sizeof(*old.to));
    ebpfMonCatalogueLinks(t->mem, t->cat, index);
    same = old.toCount == r->toCount && old.fwd == r->fwd && old.flags == r->flags &&
           (!old.toCount || memcmp(old.to, r->to, old.toCount * sizeof(*old.to)) == 0);
    free(old.to);
    return !same;
}

void ebpfMonInstallLinks(ebpfMonTarget *t, uint32_t index)
{
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX || !linksDiffer(t, index))
        return;
    c = closuresOf(t->cat);
    if (c)
        catchUp(t, c, index);
    if (c && placeClosures(t, c) == 0)
        markRecords(t, c);
    else
        snprintf(t->note, sizeof(t->note), "a change of links could not be followed: raise maxRecords of "
                 "ebpfMonConfigure");
    ebpfMonClosuresFree(c);
}

void ebpfMonInstallRemove(ebpfMonTarget *t)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    uint32_t slot = t->slot;
    uint64_t *addr;

    if (slot == UINT32_MAX || !tab)
        return;
    addr = addresses(t->cat);
    if (addr)
        ebpfMonRecIndexDel((uint32_t)t->pid, addr, t->cat->count);
    free(addr);
    setArrays(t, 0);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        memset((void *)&tab->conf[slot + i], 0, sizeof(tab->conf[0]));
        tab->state[slot + i].addr = 0;
    }
    ebpfMonTargetsLock();
    t->slot = UINT32_MAX;
    ebpfMonStretchesFree(t->stretch[0]);
    ebpfMonStretchesFree(t->stretch[1]);
    t->stretch[0] = t->stretch[1] = NULL;
    free(t->how);
    free(t->adjust);
    free(t->counts);
    free(t->rate);
    t->how = NULL;
    t->adjust = NULL;
    t->counts = NULL;
    t->rate = NULL;
    t->trapped = t->shown = 0;
    ebpfMonTargetsUnlock();
    ebpfMonRootsDel(slot, t->cat->count);
    ebpfMonRangeGive(slots, slot, t->cat->count);
    if (t->closureAt != UINT32_MAX)
        ebpfMonRangeGive(places, t->closureAt, t->closureCount);
    if (t->oldClosureAt != UINT32_MAX)
        ebpfMonRangeGive(places, t->oldClosureAt, t->oldClosureCount);
    t->closureAt = t->oldClosureAt = UINT32_MAX;
}

void ebpfMonInstallShown(ebpfMonTarget *t, const char *pattern)
{
    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock();
    t->shown = 0;
    for (uint32_t i = 0; i < t->cat->count; i++) {
        int match = epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern);

        t->how[i] = (uint8_t)((t->how[i] & ~EBPFMON_SHOWN) | (match ? EBPFMON_SHOWN : 0));
        t->shown += (uint32_t)match;
    }
    ebpfMonTargetsUnlock();
}
