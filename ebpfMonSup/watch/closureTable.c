/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "watch/closureTable.h"
#include "watch/slotAllocator.h"

static ebpfMonSlotAllocator *places;

int ebpfMonClosureTableInit(unsigned maxClosure)
{
    places = ebpfMonSlotAllocatorNew(maxClosure);
    return places ? 0 : -1;
}

ebpfMonClosures *ebpfMonClosureTableMake(const ebpfMonCatalogue *cat)
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
    const ebpfMonTables *tab = ebpfMonKernelTables();

    if (t->stretch[bank])
        for (uint32_t i = 0; i < t->cat->count; i++)
            t->adjust[i] += (int64_t)ebpfMonTargetCountPasses(t, bank, i);
    for (uint32_t i = 0; i < t->cat->count; i++)
        tab->state[t->slot + i].pass[bank] = 0;
    ebpfMonStretchesFree(t->stretch[bank]);
    t->stretch[bank] = NULL;
}

uint64_t ebpfMonClosureTableStampOrder(uint64_t time)
{
    return time << 32 | time >> 32; /* epicsTimeStamp: the seconds are in the low half */
}

/* The last record of every record's stretch. A record that leaves a stretch takes along what was known of it
 * by that stretch's last record; the kernel half may be writing its time at this moment. */
static void nameLast(ebpfMonTarget *t, const ebpfMonStretches *stretch)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();

    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &tab->state[t->slot + i];
        uint32_t last = t->slot + i;
        uint64_t was = st->time, known;

        if (stretch && stretch->ahead[i])
            last = t->slot + stretch->order[stretch->place[i] + stretch->ahead[i]];
        if (st->last == last)
            continue;
        known = tab->state[st->last].time;
        if (ebpfMonClosureTableStampOrder(known) > ebpfMonClosureTableStampOrder(was))
            __atomic_compare_exchange_n((uint64_t *)&st->time, &was, known, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        st->last = last;
    }
}

/* Into a new part of the table, and only then every record's pointer there. The part before stays until the
 * next change: a walk may be under way in it. */
int ebpfMonClosureTableInstall(ebpfMonTarget *t, const ebpfMonClosures *c)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    uint32_t at = ebpfMonSlotAllocatorTake(places, c->count);
    ebpfMonStretches *stretch;
    int bank = !t->bank;

    if (at == UINT32_MAX)
        return -1;
    stretch = stretchesOf(t->cat, c);
    ebpfMonTargetsLock(ebpfMonTheTargets);
    foldBank(t, bank);
    t->stretch[bank] = stretch;
    t->bank = bank;
    ebpfMonTargetsUnlock(ebpfMonTheTargets);
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
        rc->flags = t->cat->rec[i].flags & (EBPFMON_REC_TSE | EBPFMON_REC_WALK) ? EBPFMON_REC_NOTIME : 0;
    }
    ebpfMonClosureTableMarkWanted(t);
    nameLast(t, stretch);
    if (t->oldClosureAt != UINT32_MAX)
        ebpfMonSlotAllocatorGive(places, t->oldClosureAt, t->oldClosureCount);
    t->oldClosureAt = t->closureAt;
    t->oldClosureCount = t->closureCount;
    t->closureAt = at;
    t->closureCount = c->count;
    return 0;
}

/* From each record that the filter shows back to those whose chains have it. NULL: no memory. */
static uint8_t *wantedOf(const ebpfMonTarget *t)
{
    const ebpfMonCatalogue *cat = t->cat;
    uint32_t n = cat->count, edges = 0, queued = 0;
    uint32_t *start = calloc((size_t)n + 2, sizeof(*start)), *queue = malloc(((size_t)n + 1) * sizeof(*queue)), *from;
    uint8_t *wanted = calloc((size_t)n + 1, 1);

    for (uint32_t i = 0; start && i < n; i++)
        for (uint32_t k = 0; k < cat->rec[i].toCount; k++, edges++)
            start[cat->rec[i].to[k] + 2]++;
    from = malloc(((size_t)edges + 1) * sizeof(*from));
    if (!start || !queue || !from || !wanted) {
        free(wanted);
        wanted = NULL;
        goto done;
    }
    for (uint32_t i = 0; i < n; i++)
        start[i + 2] += start[i + 1];
    /* where a target's part begins moves on to where it ends, and that is where the next one's began */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < cat->rec[i].toCount; k++)
            from[start[cat->rec[i].to[k] + 1]++] = i;
    for (uint32_t i = 0; i < n; i++)
        if (t->how[i] & EBPFMON_SHOWN) {
            wanted[i] = 1;
            queue[queued++] = i;
        }
    for (uint32_t at = 0; at < queued; at++)
        for (uint32_t k = start[queue[at]]; k < start[queue[at] + 1]; k++)
            if (!wanted[from[k]]) {
                wanted[from[k]] = 1;
                queue[queued++] = from[k];
            }
done:
    free(start);
    free(queue);
    free(from);
    return wanted;
}

void ebpfMonClosureTableMarkWanted(ebpfMonTarget *t)
{
    const ebpfMonTables *tab = ebpfMonKernelTables();
    uint8_t *wanted = t->how && t->shown < t->cat->count ? wantedOf(t) : NULL;

    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &tab->conf[t->slot + i];

        rc->flags = (uint8_t)((rc->flags & ~EBPFMON_REC_UNWANTED) |
                              (wanted && !wanted[i] ? EBPFMON_REC_UNWANTED : 0));
    }
    free(wanted);
}

void ebpfMonClosureTableRemove(ebpfMonTarget *t)
{
    if (t->closureAt != UINT32_MAX)
        ebpfMonSlotAllocatorGive(places, t->closureAt, t->closureCount);
    if (t->oldClosureAt != UINT32_MAX)
        ebpfMonSlotAllocatorGive(places, t->oldClosureAt, t->oldClosureCount);
    t->closureAt = t->oldClosureAt = UINT32_MAX;
}
