/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <epicsString.h>

#include "common/clock.h"
#include "ioc/recordLinks.h"
#include "watch/recordTable.h"
#include "watch/closureTable.h"
#include "watch/slotAllocator.h"

static ebpfMonSlotAllocator *slots;

int ebpfMonRecordTableInit(unsigned maxRecords, unsigned maxClosure)
{
    slots = ebpfMonSlotAllocatorNew(maxRecords);
    return slots && ebpfMonClosureTableInit(maxClosure) == 0 ? 0 : -1;
}

/* Which records want the trap; counts go on where they were. */
static void markRecords(ebpfMonTarget *t, const ebpfMonClosures *c)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    int trap = !!(t->att.on & EBPFMON_BIT(ebpfMonProgCompleted));

    ebpfMonTargetsLock(ebpfMonTheTargets);
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
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

void ebpfMonRecordTableSetTrap(ebpfMonTarget *t, int attached)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();

    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];

        if (!(t->how[i] & EBPFMON_BY_TRAP) || attached == !(t->how[i] & EBPFMON_AT_LEAST))
            continue;
        t->how[i] ^= EBPFMON_AT_LEAST;
        t->adjust[i] += (int64_t)(attached ? st->count - st->trapped : st->trapped - st->count);
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
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
            ebpfMonKernelSetArray((uint32_t)t->pid, f->addr, &conf);
        else
            ebpfMonKernelRemoveArray((uint32_t)t->pid, f->addr);
    }
}

void ebpfMonRecordTableAddArrays(ebpfMonTarget *t)
{
    setArrays(t, 1);
}

static uint64_t *addresses(const ebpfMonCatalogue *cat)
{
    uint64_t *a = malloc(((size_t)cat->count + 1) * sizeof(*a));

    for (uint32_t i = 0; a && i < cat->count; i++)
        a[i] = cat->rec[i].addr;
    return a;
}

/* Of a target that chains are told of already: the event thread reads its links for their trees. */
static void readLinks(ebpfMonTarget *t, long index)
{
    ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(t->mem, t->cat, index < 0 ? EBPFMON_ALL_RECORDS : (uint32_t)index);

    if (!links)
        return;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    ebpfMonRecordLinksExchange(t->cat, links);
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonRecordLinksFree(links);
}

int ebpfMonRecordTableInstall(ebpfMonTarget *t)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    ebpfMonCatalogue *cat = t->cat;
    ebpfMonClosures *c;
    uint64_t *addr;
    uint32_t slot;
    int rc = -1;

    readLinks(t, -1);
    slot = ebpfMonSlotAllocatorTake(slots, cat->count);
    if (slot == UINT32_MAX) {
        snprintf(t->note, sizeof(t->note), "its %u records do not fit any more: raise maxRecords of "
                 "ebpfMonConfigure; puts only", cat->count);
        return -1;
    }
    c = ebpfMonClosureTableMake(cat);
    addr = addresses(cat);
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->how = calloc(cat->count + 1, sizeof(*t->how));
    t->adjust = calloc(cat->count + 1, sizeof(*t->adjust));
    t->publisher.counts = calloc(cat->count + 1, sizeof(*t->publisher.counts));
    t->publisher.rate = calloc(cat->count + 1, sizeof(*t->publisher.rate));
    t->slot = slot;
    t->slotAt = ebpfMonClockMonotonic();
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    if (!c || !addr || !t->how || !t->adjust || !t->publisher.counts || !t->publisher.rate) {
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
    if (ebpfMonClosureTableInstall(t, c)) {
        snprintf(t->note, sizeof(t->note), "its chains do not fit any more: raise maxRecords of "
                 "ebpfMonConfigure; puts only");
        goto fail;
    }
    markRecords(t, c);
    t->indexed = 1;
    setArrays(t, 1);
    if (ebpfMonKernelSetRecordIndex((uint32_t)t->pid, addr, cat->count, slot)) {
        snprintf(t->note, sizeof(t->note), "the table of records is full: raise maxRecords of "
                 "ebpfMonConfigure; puts only");
        goto fail;
    }
    rc = 0;
fail:
    ebpfMonClosuresFree(c);
    free(addr);
    if (rc)
        ebpfMonRecordTableRemove(t);
    return rc;
}

#define FRESH       1
#define FRESH_LATER 2 /* and it processed since it was accounted for */

/* The records that this one reaches now and did not before: FRESH. NULL without memory. */
static uint8_t *newlyReached(ebpfMonTarget *t, const ebpfMonClosures *c, uint32_t index)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    volatile struct ebpfMonRecConf *rc = &tab->conf[t->slot + index];
    uint8_t *fresh = calloc((size_t)t->cat->count + 1, 1);

    for (uint32_t k = 0; fresh && k < c->len[index]; k++)
        fresh[c->list[c->first[index] + k]] = FRESH;
    for (uint32_t k = 0; fresh && k < rc->len; k++) {
        uint32_t r = EBPFMON_ENTRY_SLOT(tab->closure[rc->first + k]) - t->slot;

        if (r < t->cat->count)
            fresh[r] = 0;
    }
    return fresh;
}

/* Newly reached records may have processed since the link was written: once, as far as their time stamps tell.
 * Only they: what was reached before is accounted for at the end of the chain that may be under way now. */
static void catchUp(ebpfMonTarget *t, uint8_t *fresh)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();

    ebpfMonTargetsLock(ebpfMonTheTargets);
    /* First all of them are looked at, and only then is anything changed: one is compared with another's time. */
    for (int change = 0; fresh && change < 2; change++)
        for (uint32_t r = 0; r < t->cat->count; r++) {
            volatile struct ebpfMonRecState *st = &tab->state[t->slot + r];
            uint64_t was = st->time, time;
            uint8_t pact = 1;

            if (!fresh[r] || (t->how[r] & EBPFMON_BY_TRAP) || st->pending ||
                ebpfMonMemReadNow(t->pid, t->cat->rec[r].addr + t->cat->common.time, &time, sizeof(time)))
                continue;
            if (!change) {
                int later = ebpfMonClosureTableStampOrder(time) > ebpfMonClosureTableStampOrder(was) &&
                            ebpfMonClosureTableStampOrder(time) > ebpfMonClosureTableStampOrder(tab->state[st->last].time);

                ebpfMonMemReadNow(t->pid, t->cat->rec[r].addr + t->cat->common.pact, &pact, sizeof(pact));
                fresh[r] = later && !pact ? FRESH_LATER : FRESH;
            } else if (fresh[r] == FRESH_LATER) {
                fresh[r] = FRESH;
                if (__atomic_compare_exchange_n((uint64_t *)&st->time, &was, time, 0, __ATOMIC_RELAXED,
                                                __ATOMIC_RELAXED))
                    t->adjust[r]++;
            }
        }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
}

/* Nonzero: the record's links are not what they were. */
static int linksDiffer(ebpfMonTarget *t, uint32_t index)
{
    ebpfMonRecord *r = &t->cat->rec[index], old = *r;
    int same;

    old.to = malloc((old.toCount + 1) * sizeof(*old.to));
    if (!old.to) {
        readLinks(t, index);
        return 1;
    }
    if (old.toCount)
        memcpy(old.to, r->to, old.toCount * sizeof(*old.to));
    readLinks(t, index);
    same = old.toCount == r->toCount && old.fwd == r->fwd && old.flags == r->flags &&
           (!old.toCount || memcmp(old.to, r->to, old.toCount * sizeof(*old.to)) == 0);
    free(old.to);
    return !same;
}

void ebpfMonRecordTableUpdateAllLinks(ebpfMonTarget *t)
{
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX)
        return;
    readLinks(t, -1);
    c = ebpfMonClosureTableMake(t->cat);
    if (c && ebpfMonClosureTableInstall(t, c) == 0)
        markRecords(t, c);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTableUpdateLinks(ebpfMonTarget *t, uint32_t index)
{
    ebpfMonClosures *c;
    uint8_t *fresh;

    if (t->slot == UINT32_MAX || !linksDiffer(t, index))
        return;
    c = ebpfMonClosureTableMake(t->cat);
    fresh = c ? newlyReached(t, c, index) : NULL;
    catchUp(t, fresh);
    if (c && ebpfMonClosureTableInstall(t, c) == 0) {
        catchUp(t, fresh); /* what processed since the line before the last */
        markRecords(t, c);
    } else {
        snprintf(t->note, sizeof(t->note), "a change of links could not be followed: raise maxRecords of "
                 "ebpfMonConfigure");
    }
    free(fresh);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTableRemoveIndex(ebpfMonTarget *t)
{
    uint64_t *addr;

    if (t->cat)
        setArrays(t, 0);
    if (!t->indexed)
        return;
    t->indexed = 0;
    addr = addresses(t->cat);
    if (addr)
        ebpfMonKernelRemoveRecordIndex((uint32_t)t->pid, addr, t->cat->count);
    free(addr);
}

void ebpfMonRecordTableRemove(ebpfMonTarget *t)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    uint32_t slot = t->slot;

    if (slot == UINT32_MAX || !tab)
        return;
    ebpfMonRecordTableRemoveIndex(t);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        memset((void *)&tab->conf[slot + i], 0, sizeof(tab->conf[0]));
        memset((void *)&tab->state[slot + i], 0, sizeof(tab->state[0]));
    }
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->slot = UINT32_MAX;
    ebpfMonStretchesFree(t->stretch[0]);
    ebpfMonStretchesFree(t->stretch[1]);
    t->stretch[0] = t->stretch[1] = NULL;
    free(t->how);
    free(t->adjust);
    free(t->publisher.counts);
    free(t->publisher.rate);
    t->how = NULL;
    t->adjust = NULL;
    t->publisher.counts = NULL;
    t->publisher.rate = NULL;
    t->trapped = t->shown = 0;
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonKernelRemoveRoots(slot, t->cat->count);
    ebpfMonSlotAllocatorGive(slots, slot, t->cat->count);
    ebpfMonClosureTableRemove(t);
}

void ebpfMonRecordTableSetShown(ebpfMonTarget *t, const char *pattern)
{
    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock(ebpfMonTheTargets);
    t->shown = 0;
    for (uint32_t i = 0; i < t->cat->count; i++) {
        int match = epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern);

        t->how[i] = (uint8_t)((t->how[i] & ~EBPFMON_SHOWN) | (match ? EBPFMON_SHOWN : 0));
        t->shown += (uint32_t)match;
    }
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
    ebpfMonClosureTableMarkWanted(t);
}
