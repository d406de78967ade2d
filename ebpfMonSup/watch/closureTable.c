/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <epicsThread.h>

#include "common/array.h"
#include "watch/closureTable.h"
#include "watch/followed.h"
#include "watch/typeTrial.h"

/* --- places --- */

/* Runs in use, in order: few, two or three for each IOC. First fit. */
typedef struct {
    uint32_t first, count;
} run;

struct ebpfMonSlotAllocator {
    uint32_t size, used, runs;
    size_t   room;
    run     *run;
};

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size)
{
    ebpfMonSlotAllocator *r = calloc(1, sizeof(*r));

    if (r)
        r->size = size;
    return r;
}

void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *r)
{
    if (!r)
        return;
    free(r->run);
    free(r);
}

uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *r, uint32_t count)
{
    uint32_t at = 0, i;

    if (count == 0)
        return 0;
    for (i = 0; i < r->runs && r->run[i].first - at < count; i++)
        at = r->run[i].first + r->run[i].count;
    if (i == r->runs && r->size - at < count)
        return UINT32_MAX;
    if (ebpfMonArrayGrow(&r->run, &r->room, (size_t)r->runs + 1, 64, sizeof(*r->run)))
        return UINT32_MAX;
    memmove(&r->run[i + 1], &r->run[i], (r->runs - i) * sizeof(*r->run));
    r->run[i].first = at;
    r->run[i].count = count;
    r->runs++;
    r->used += count;
    return at;
}

void ebpfMonSlotAllocatorReturn(ebpfMonSlotAllocator *r, uint32_t first, uint32_t count)
{
    if (count == 0)
        return;
    for (uint32_t i = 0; i < r->runs; i++) {
        if (r->run[i].first != first || r->run[i].count != count)
            continue;
        memmove(&r->run[i], &r->run[i + 1], (r->runs - i - 1) * sizeof(*r->run));
        r->runs--;
        r->used -= count;
        return;
    }
}

uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *r)
{
    return r->used;
}

/* --- closures --- */

#define WALK_SECONDS 0.001 /* one takes microseconds, unless its thread loses the CPU, … */
#define LOOK_SECONDS 5e-7  /* … and this at most for each record of a large closure */

struct ebpfMonClosureTable {
    ebpfMonTargets *targets;
    const ebpfMonTables *tables;
    ebpfMonSlotAllocator *places;
};

ebpfMonClosureTable *ebpfMonClosureTableNew(ebpfMonTargets *targets, const ebpfMonTables *tables)
{
    ebpfMonClosureTable *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->targets = targets;
    table->tables = tables;
    table->places = ebpfMonSlotAllocatorNew(tables->size.maxClosure);
    if (table->places)
        return table;
    free(table);
    return NULL;
}

void ebpfMonClosureTableFree(ebpfMonClosureTable *table)
{
    if (!table)
        return;
    ebpfMonSlotAllocatorFree(table->places);
    free(table);
}

/* The links of the catalogue as closures have them: record i leads to to[start[i]] … to[start[i + 1] - 1]; *to lies
 * behind "start" in one block. NULL without memory. */
static uint32_t *makeEdges(const ebpfMonCatalogue *cat, uint32_t **to)
{
    uint32_t *start, edges = 0;

    for (uint32_t i = 0; i < cat->count; i++)
        edges += cat->rec[i].toCount;
    start = calloc((size_t)cat->count + edges + 1, sizeof(*start));
    *to = start ? start + cat->count + 1 : NULL;
    for (uint32_t i = 0; start && i < cat->count; i++) {
        start[i + 1] = start[i] + cat->rec[i].toCount;
        if (cat->rec[i].toCount)
            memcpy(*to + start[i], cat->rec[i].to, cat->rec[i].toCount * sizeof(**to));
    }
    return start;
}

ebpfMonClosures *ebpfMonClosureTableMakeClosures(const ebpfMonCatalogue *cat)
{
    uint32_t *to, *start = makeEdges(cat, &to);
    ebpfMonClosures *c = NULL;

    if (start) /* lists of their own may take three times the room of the order itself */
        c = ebpfMonClosuresMake(cat->count, start, to, cat->count * 4 + 1024, EBPFMON_CLOSURE_MAX);
    free(start);
    return c;
}

ebpfMonStretches *ebpfMonClosureTableMakeStretches(const ebpfMonTarget *t, const ebpfMonClosures *c,
                                                   const uint32_t *order, const uint8_t *isActive)
{
    const ebpfMonCatalogue *cat = t->cat;
    uint32_t n = cat->count, *to, *start = makeEdges(cat, &to), *fwd = malloc(((size_t)n + 1) * sizeof(*fwd));
    uint8_t *skip = malloc((size_t)n + 1), *behind = ebpfMonTypeTrialFindBehind(cat);
    const unsigned byTrap = EBPFMON_REC_TSE | EBPFMON_REC_UNDEFINED | EBPFMON_REC_STAMPED;
    ebpfMonStretches *s = NULL;

    if (start && fwd && skip && behind) {
        for (uint32_t i = 0; i < n; i++) {
            fwd[i] = cat->rec[i].fwd;
            if (isActive && fwd[i] != EBPFMON_NO_RECORD && isActive[fwd[i]])
                fwd[i] = EBPFMON_NO_RECORD;
            /* Each reaches the other: then both reach the same records. The second one may make the first one process,
             * by an input link before it gets its own time stamp, which would hide that. */
            if (fwd[i] != EBPFMON_NO_RECORD && c->len[fwd[i]] >= c->len[i])
                fwd[i] = EBPFMON_NO_RECORD;
            /* A record that the trap counts must not be counted with its stretch, too. For a record type that is not
             * Base's it is not known whether the time stamp comes before the forward link; and such types and device
             * supports are tried by the count of the record alone (typeTrial.c). */
            skip[i] = c->flags[i] || behind[i] || (cat->rec[i].flags & byTrap) ||
                      *ebpfMonCatalogueStamps(cat, i) != EBPFMON_STAMPS_BASE || (t->how[i] & EBPFMON_BY_TRAP);
        }
        s = ebpfMonStretchesMake(n, order, start, to, fwd, skip, EBPFMON_STRETCH_MAX);
    }
    free(start);
    free(fwd);
    free(skip);
    free(behind);
    return s;
}

/* Empties a bank: its counts are added to those of the records. The kernel part has not counted in this bank since
 * the closures changed the last time. Under the lock. */
static void emptyBank(ebpfMonTarget *t, int bank)
{
    t->closures.moved += ebpfMonTargetAddPasses(t, bank, (uint64_t *)t->adjust);
    for (uint32_t i = 0; i < t->cat->count; i++)
        t->recState[i].pass[bank] = 0;
}

/* Sets the last record of every record's stretch. The time of a record in a stretch is known by that stretch's last
 * record: one that leaves the stretch takes it along. The kernel part may be writing its time at this moment. */
static void setLast(const ebpfMonClosureTable *table, ebpfMonTarget *t, const ebpfMonStretches *stretch)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];
        uint32_t last = t->slot + i;
        uint64_t was = st->time, known;

        if (stretch && stretch->ahead[i])
            last = t->slot + stretch->order[stretch->place[i] + stretch->ahead[i]];
        if (st->last == last)
            continue;
        known = table->tables->state[st->last].time;
        if (ebpfMonClosureTableStampOrder(known) > ebpfMonClosureTableStampOrder(was))
            __atomic_compare_exchange_n((uint64_t *)&st->time, &was, known, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED);
        st->last = last;
    }
}

/* Writes a new part of the table. */
static void writePlaces(const ebpfMonClosureTable *table, const ebpfMonTarget *t, const ebpfMonClosures *c, uint32_t at,
                        const ebpfMonStretches *stretch, int bank)
{
    for (uint32_t i = 0; i < c->count; i++) {
        /* In the common order, at the beginning, the records of a stretch follow each other. In the lists behind it,
         * each for one root, they need not; in scan lists "ahead" tells. */
        unsigned ahead = stretch && i < t->cat->count ? stretch->ahead[c->list[i]] : c->ahead ? c->ahead[i] : 0;

        table->tables->closure[at + i] = EBPFMON_ENTRY(t->slot + c->list[i], ahead, bank);
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Lets every record point to its closure in the new part. */
static void writePointers(const ebpfMonClosureTable *table, const ebpfMonTarget *t, const ebpfMonClosures *c,
                          uint32_t at)
{
    const unsigned moves = EBPFMON_REC_TSE | EBPFMON_REC_WALK | EBPFMON_REC_STAMPED;

    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &table->tables->conf[t->slot + i];
        union {
            uint64_t both;
            uint32_t part[2];
        } v = { .part = { at + c->first[i], c->len[i] } };

        /* first and len in one store: they are aligned to 8 together */
        __atomic_store_n((uint64_t *)&rc->first, v.both, __ATOMIC_RELEASE);
        rc->flags = (uint8_t)((rc->flags & EBPFMON_REC_SINGLE) |
                              (t->cat->rec[i].flags & moves ? EBPFMON_REC_NOTIME : 0));
    }
}

static void setSingle(const ebpfMonClosureTable *table, const ebpfMonTarget *t, int isOn)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &table->tables->conf[t->slot + i];

        rc->flags = (uint8_t)(isOn ? rc->flags | EBPFMON_REC_SINGLE : rc->flags & ~EBPFMON_REC_SINGLE);
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Waits until all walks that have begun have ended, also those whose threads wait for a CPU: programs at probes are
 * readers of RCU (uprobe_prog_run in kernel/trace/bpf_trace.c), and this command is synchronize_rcu()
 * (kernel/sched/membarrier.c). It is nothing on a host with one CPU, and fails with nohz_full. */
static void waitForWalks(const ebpfMonTarget *t)
{
    epicsThreadSleep(WALK_SECONDS + LOOK_SECONDS * t->cat->count);
    syscall(__NR_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
}

/* A walk that has begun before may count a stretch, and note its time with its last record, when that is no more its
 * last record: it would be counted twice. */
void ebpfMonClosureTableBeginChange(ebpfMonClosureTable *table, const ebpfMonTarget *t)
{
    setSingle(table, t, 1);
    waitForWalks(t);
}

void ebpfMonClosureTableEndChange(ebpfMonClosureTable *table, const ebpfMonTarget *t)
{
    setSingle(table, t, 0);
}

/* Writes the new part first, and lets the records point to it afterwards. The old part stays until the next change,
 * because the kernel part may be walking through it. */
int ebpfMonClosureTableInstall(ebpfMonClosureTable *table, ebpfMonTarget *t, const ebpfMonClosures *c)
{
    uint32_t at = ebpfMonSlotAllocatorTake(table->places, c->count);
    int bank = !t->followed->records.bank;
    ebpfMonStretches *stretch, *before;

    if (at == UINT32_MAX) {
        errno = ENOSPC;
        return -1;
    }
    if (ebpfMonTablesUse(table->tables, 0, at + c->count)) {
        int error = errno;

        ebpfMonSlotAllocatorReturn(table->places, at, c->count);
        errno = error;
        return -1;
    }
    stretch = t->followed->sweep.number ? NULL : ebpfMonClosureTableMakeStretches(t, c, c->list, NULL);
    ebpfMonTargetsLock(table->targets);
    emptyBank(t, bank);
    before = t->closures.stretch[bank];
    t->closures.stretch[bank] = stretch;
    ebpfMonTargetsUnlock(table->targets);
    ebpfMonStretchesFree(before);
    t->followed->records.bank = bank;
    writePlaces(table, t, c, at, stretch, bank);
    writePointers(table, t, c, at);
    ebpfMonClosureTableMarkTraced(table, t);
    setLast(table, t, stretch);
    if (t->closures.oldAt != UINT32_MAX)
        ebpfMonSlotAllocatorReturn(table->places, t->closures.oldAt, t->closures.oldCount);
    ebpfMonTargetsLock(table->targets);
    t->closures.oldAt = t->closures.at;
    t->closures.oldCount = t->closures.count;
    t->closures.at = at;
    t->closures.count = c->count;
    ebpfMonTargetsUnlock(table->targets);
    return 0;
}

/* A byte for each record, nonzero: its chain can have a record that the filter shows. NULL without memory. */
static uint8_t *findTraced(const ebpfMonTarget *t)
{
    const ebpfMonCatalogue *cat = t->cat;
    uint32_t n = cat->count, edges = 0, queued = 0;
    uint32_t *start = calloc((size_t)n + 2, sizeof(*start)), *queue = malloc(((size_t)n + 1) * sizeof(*queue)), *from;
    uint8_t *traced = calloc((size_t)n + 1, 1);

    for (uint32_t i = 0; start && i < n; i++)
        for (uint32_t k = 0; k < cat->rec[i].toCount; k++, edges++)
            start[cat->rec[i].to[k] + 2]++;
    from = malloc(((size_t)edges + 1) * sizeof(*from));
    if (!start || !queue || !from || !traced) {
        free(traced);
        traced = NULL;
        goto done;
    }
    for (uint32_t i = 0; i < n; i++)
        start[i + 2] += start[i + 1];
    /* start[i + 1] is where the part of record i begins. It grows while the part is filled, and is at the end where the
     * part of record i + 1 begins. So then start[i] is where the part of record i begins. */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < cat->rec[i].toCount; k++)
            from[start[cat->rec[i].to[k] + 1]++] = i;
    for (uint32_t i = 0; i < n; i++)
        if (t->how[i] & EBPFMON_SHOWN) {
            traced[i] = 1;
            queue[queued++] = i;
        }
    for (uint32_t at = 0; at < queued; at++)
        for (uint32_t k = start[queue[at]]; k < start[queue[at] + 1]; k++)
            if (!traced[from[k]]) {
                traced[from[k]] = 1;
                queue[queued++] = from[k];
            }
done:
    free(start);
    free(queue);
    free(from);
    return traced;
}

void ebpfMonClosureTableMarkTraced(ebpfMonClosureTable *table, const ebpfMonTarget *t)
{
    uint8_t *traced = t->how && t->shown < t->cat->count ? findTraced(t) : NULL;

    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &table->tables->conf[t->slot + i];

        rc->flags = (uint8_t)((rc->flags & ~EBPFMON_REC_UNTRACED) |
                              (traced && !traced[i] ? EBPFMON_REC_UNTRACED : 0));
    }
    free(traced);
}

void ebpfMonClosureTableRemove(ebpfMonClosureTable *table, ebpfMonTarget *t)
{
    if (t->closures.at != UINT32_MAX)
        ebpfMonSlotAllocatorReturn(table->places, t->closures.at, t->closures.count);
    if (t->closures.oldAt != UINT32_MAX)
        ebpfMonSlotAllocatorReturn(table->places, t->closures.oldAt, t->closures.oldCount);
    ebpfMonTargetsLock(table->targets);
    t->closures.at = t->closures.oldAt = UINT32_MAX;
    ebpfMonTargetsUnlock(table->targets);
}
