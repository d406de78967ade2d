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

/* The new closures into a new part of the table, and only then every record's pointer there. The part
 * before stays until the next change: a walk may be under way in it. */
static int placeClosures(ebpfMonTarget *t, const ebpfMonClosures *c)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    uint32_t at = ebpfMonRangeTake(places, c->count);

    if (at == UINT32_MAX)
        return -1;
    for (uint32_t i = 0; i < c->count; i++)
        tab->closure[at + i] = t->slot + c->list[i];
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
        uint64_t now = ebpfMonTargetCount(t, i);
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];

        t->how[i] &= EBPFMON_SHOWN;
        if (want) {
            t->how[i] |= trap ? EBPFMON_BY_TRAP : EBPFMON_BY_TRAP | EBPFMON_AT_LEAST;
            t->trapped++;
        }
        t->adjust[i] = (int64_t)(now - (want && trap ? st->trapped : st->count));
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
        uint64_t now;

        if (!(t->how[i] & EBPFMON_BY_TRAP) || attached == !(t->how[i] & EBPFMON_AT_LEAST))
            continue;
        now = ebpfMonTargetCount(t, i);
        if (attached)
            t->how[i] &= (uint8_t)~EBPFMON_AT_LEAST;
        else
            t->how[i] |= EBPFMON_AT_LEAST;
        t->adjust[i] = (int64_t)(now - (attached ? st->trapped : st->count));
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
    t->before = calloc(cat->count + 1, sizeof(*t->before));
    t->rate = calloc(cat->count + 1, sizeof(*t->rate));
    t->slot = slot;
    ebpfMonTargetsUnlock();
    if (!c || !addr || !t->how || !t->adjust || !t->before || !t->rate) {
        snprintf(t->note, sizeof(t->note), "out of memory");
        goto fail;
    }
    for (uint32_t i = 0; i < cat->count; i++) {
        volatile struct ebpfMonRecConf *conf = &tab->conf[slot + i];
        struct ebpfMonRecState st = { .addr = cat->rec[i].addr };
        const ebpfMonRecType *rt = &cat->rtype[cat->rec[i].rtype];
        const ebpfMonField *val = rt->valField >= 0 ? &cat->field[rt->valField] : NULL;

        conf->len = 0;
        conf->valOff = val && !val->arrayCount ? val->offset : 0;
        conf->valSize = val ? (uint8_t)(val->size > 16 ? 16 : val->size) : 0;
        st.seen = ebpfMonMemRead(t->mem, cat->rec[i].addr + cat->common.time, &st.time, sizeof(st.time)) == 0;
        memcpy((void *)&tab->state[slot + i], &st, sizeof(st));
    }
    markRecords(t, c);
    if (placeClosures(t, c)) {
        snprintf(t->note, sizeof(t->note), "its chains do not fit any more: raise maxRecords of "
                 "ebpfMonConfigure; puts only");
        goto fail;
    }
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

void ebpfMonInstallLinks(ebpfMonTarget *t, long index)
{
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX)
        return;
    ebpfMonCatalogueLinks(t->mem, t->cat, index);
    c = closuresOf(t->cat);
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
    free(t->how);
    free(t->adjust);
    free(t->before);
    free(t->rate);
    t->how = NULL;
    t->adjust = NULL;
    t->before = NULL;
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
