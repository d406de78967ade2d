/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsStdlib.h>
#include <epicsString.h>

#include "common/clock.h"
#include "ioc/recordLinks.h"
#include "watch/closureTable.h"
#include "watch/linkChange.h"
#include "watch/recordTables.h"
#include "watch/slotAllocator.h"

struct ebpfMonRecordTables {
    ebpfMonTargets *targets;
    ebpfMonRecordTablesKernel kernel;
    ebpfMonSlotAllocator *slots;
    ebpfMonClosureTable *closures;
};

ebpfMonRecordTables *ebpfMonRecordTablesNew(ebpfMonTargets *targets, const ebpfMonRecordTablesKernel *kernel)
{
    ebpfMonRecordTables *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->targets = targets;
    r->kernel = *kernel;
    r->slots = ebpfMonSlotAllocatorNew(kernel->tables->size.maxRecords);
    r->closures = ebpfMonClosureTableNew(targets, kernel->tables);
    if (r->slots && r->closures)
        return r;
    ebpfMonRecordTablesFree(r);
    return NULL;
}

void ebpfMonRecordTablesFree(ebpfMonRecordTables *r)
{
    if (!r)
        return;
    ebpfMonSlotAllocatorFree(r->slots);
    ebpfMonClosureTableFree(r->closures);
    free(r);
}

/* Marks which records want the trap; their counts go on where they were. */
static void markTrapped(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonClosures *c)
{
    int trap = !!(t->follower.att.on & EBPFMON_BIT(ebpfMonProgCompleted));

    t->follower.trapped = 0;
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        int want = (c->flags[i] & EBPFMON_NODE_TWICE) || (t->cat->rec[i].flags & EBPFMON_REC_TSE);
        int was = (t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST)) == EBPFMON_BY_TRAP;
        volatile struct ebpfMonRecState *st = &t->recState[i];

        t->how[i] &= EBPFMON_SHOWN;
        if (want) {
            t->how[i] |= trap ? EBPFMON_BY_TRAP : EBPFMON_BY_TRAP | EBPFMON_AT_LEAST;
            t->follower.trapped++;
        }
        if (was != (want && trap)) /* from the one counter to the other, and the sum stays */
            t->adjust[i] += (int64_t)(was ? st->trapped - st->count : st->count - st->trapped);
    }
    ebpfMonTargetsUnlock(r->targets);
}

void ebpfMonRecordTablesSetTrap(ebpfMonRecordTables *r, ebpfMonTarget *t, int attached)
{
    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];

        if (!(t->how[i] & EBPFMON_BY_TRAP) || attached == !(t->how[i] & EBPFMON_AT_LEAST))
            continue;
        t->how[i] ^= EBPFMON_AT_LEAST;
        t->adjust[i] += (int64_t)(attached ? st->count - st->trapped : st->trapped - st->count);
    }
    ebpfMonTargetsUnlock(r->targets);
}

static void setArrays(ebpfMonRecordTables *r, const ebpfMonTarget *t, int on)
{
    const ebpfMonCatalogue *cat = t->cat;

    for (uint32_t i = 0; i < cat->fields; i++) {
        const ebpfMonField *f = &cat->field[i];
        struct ebpfMonArrayConf conf = { f->arrayPtr, f->arrayCount };

        if (!f->arrayCount)
            continue;
        if (on)
            r->kernel.setArray((uint32_t)t->pid, f->addr, &conf);
        else
            r->kernel.removeArray((uint32_t)t->pid, f->addr);
    }
}

void ebpfMonRecordTablesAddArrays(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    setArrays(r, t, 1);
}

/* malloc'ed; NULL without memory. */
static uint64_t *copyAddresses(const ebpfMonCatalogue *cat)
{
    uint64_t *a = malloc(((size_t)cat->count + 1) * sizeof(*a));

    for (uint32_t i = 0; a && i < cat->count; i++)
        a[i] = cat->rec[i].addr;
    return a;
}

/* Reads the links of one record, or of EBPFMON_ALL_RECORDS, into the catalogue. Nonzero: they are not what they were.
 * The event thread reads them for its traces, so what is read waits outside until it is whole. */
static int readLinks(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t index)
{
    ebpfMonRecordLinks *links = ebpfMonRecordLinksRead(t->follower.mem, t->cat, index);
    int differ;

    if (!links)
        return 0;
    differ = ebpfMonRecordLinksDiffer(t->cat, links);
    ebpfMonTargetsLock(r->targets);
    ebpfMonRecordLinksExchange(t->cat, links);
    ebpfMonTargetsUnlock(r->targets);
    ebpfMonRecordLinksFree(links);
    return differ;
}

/* The members of a target that a slot brings along. 0, or -1 without memory: then none is set. */
static int setSlots(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t slot)
{
    size_t n = (size_t)t->cat->count + 1;
    uint8_t *how = calloc(n, sizeof(*how));
    int64_t *adjust = calloc(n, sizeof(*adjust));
    uint64_t *counts = calloc(n, sizeof(*counts));
    float *rate = calloc(n, sizeof(*rate));

    if (!how || !adjust || !counts || !rate) {
        free(how);
        free(adjust);
        free(counts);
        free(rate);
        return -1;
    }
    ebpfMonTargetsLock(r->targets);
    t->how = how;
    t->adjust = adjust;
    t->publisher.counts = counts;
    t->publisher.rate = rate;
    t->slot = slot;
    t->slotAt = ebpfMonClockMonotonic();
    t->recState = &r->kernel.tables->state[slot];
    ebpfMonTargetsUnlock(r->targets);
    return 0;
}

static void clearSlots(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonStretches *stretch[2] = { t->stretch[0], t->stretch[1] };
    uint64_t *counts = t->publisher.counts;
    float *rate = t->publisher.rate;
    int64_t *adjust = t->adjust;
    uint8_t *how = t->how;

    ebpfMonTargetsLock(r->targets);
    t->slot = UINT32_MAX;
    t->recState = NULL;
    t->stretch[0] = t->stretch[1] = NULL;
    t->how = NULL;
    t->adjust = NULL;
    t->publisher.counts = NULL;
    t->publisher.rate = NULL;
    t->shown = 0;
    ebpfMonTargetsUnlock(r->targets);
    t->follower.trapped = 0;
    ebpfMonStretchesFree(stretch[0]);
    ebpfMonStretchesFree(stretch[1]);
    free(how);
    free(adjust);
    free(counts);
    free(rate);
}

/* What the tables by slot begin with. */
static void writeSlots(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const ebpfMonCatalogue *cat = t->cat;

    for (uint32_t i = 0; i < cat->count; i++) {
        volatile struct ebpfMonRecConf *conf = &r->kernel.tables->conf[t->slot + i];
        struct ebpfMonRecState st = { .addr = cat->rec[i].addr, .last = t->slot + i };
        const ebpfMonRecType *rt = &cat->rtype[cat->rec[i].rtype];
        const ebpfMonField *val = rt->valField >= 0 ? &cat->field[rt->valField] : NULL;

        conf->len = 0;
        conf->valOff = val && !val->arrayCount ? val->offset : 0;
        conf->valSize = val ? (uint8_t)(val->size > 16 ? 16 : val->size) : 0;
        st.seen = ebpfMonMemRead(t->follower.mem, cat->rec[i].addr + cat->common.time, &st.time, sizeof(st.time)) == 0;
        memcpy((void *)&t->recState[i], &st, sizeof(st));
    }
}

static void setIndexed(ebpfMonRecordTables *r, ebpfMonTarget *t, int indexed)
{
    ebpfMonTargetsLock(r->targets);
    t->indexed = indexed;
    ebpfMonTargetsUnlock(r->targets);
}

int ebpfMonRecordTablesAdd(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const char *trouble = NULL;
    char note[EBPFMON_NOTE_SIZE];
    ebpfMonClosures *c;
    uint64_t *addr;
    uint32_t slot;

    readLinks(r, t, EBPFMON_ALL_RECORDS);
    slot = ebpfMonSlotAllocatorTake(r->slots, t->cat->count);
    if (slot == UINT32_MAX) {
        snprintf(note, sizeof(note), "its %u records do not fit any more: raise maxRecords of ebpfMonConfigure; puts "
                 "only", t->cat->count);
        ebpfMonTargetSetNote(r->targets, t, note, 0);
        return -1;
    }
    c = ebpfMonClosureTableMakeClosures(t->cat);
    addr = copyAddresses(t->cat);
    if (!c || !addr || setSlots(r, t, slot)) {
        ebpfMonSlotAllocatorReturn(r->slots, slot, t->cat->count);
        ebpfMonTargetSetNote(r->targets, t, "no memory for its records: puts only", 0);
        ebpfMonClosuresFree(c);
        free(addr);
        return -1;
    }
    writeSlots(r, t);
    if (ebpfMonClosureTableInstall(r->closures, t, c)) {
        trouble = "its chains do not fit any more: raise maxRecords of ebpfMonConfigure; puts only";
    } else {
        markTrapped(r, t, c);
        setIndexed(r, t, 1);
        setArrays(r, t, 1);
        if (r->kernel.setRecordIndex((uint32_t)t->pid, addr, t->cat->count, slot))
            trouble = "the table of records is full: raise maxRecords of ebpfMonConfigure; puts only";
    }
    ebpfMonClosuresFree(c);
    free(addr);
    if (!trouble)
        return 0;
    ebpfMonTargetSetNote(r->targets, t, trouble, 0);
    ebpfMonRecordTablesRemove(r, t);
    return -1;
}

void ebpfMonRecordTablesUpdateAllLinks(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX)
        return;
    readLinks(r, t, EBPFMON_ALL_RECORDS);
    c = ebpfMonClosureTableMakeClosures(t->cat);
    if (c && ebpfMonClosureTableInstall(r->closures, t, c) == 0)
        markTrapped(r, t, c);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTablesUpdateLinks(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t index)
{
    ebpfMonLinkChange *change;
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX || !readLinks(r, t, index))
        return;
    c = ebpfMonClosureTableMakeClosures(t->cat);
    change = c ? ebpfMonLinkChangeNew(r->kernel.tables, t, c, index) : NULL;
    ebpfMonLinkChangeCatchUp(change, r->targets, t);
    if (c && ebpfMonClosureTableInstall(r->closures, t, c) == 0) {
        ebpfMonLinkChangeCatchUp(change, r->targets, t); /* what processed since the line before the last */
        markTrapped(r, t, c);
    } else {
        ebpfMonTargetSetNote(r->targets, t, "a change of links could not be followed: raise maxRecords of "
                             "ebpfMonConfigure", 0);
    }
    ebpfMonLinkChangeFree(change);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTablesRemoveIndex(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    uint64_t *addr;

    if (t->cat)
        setArrays(r, t, 0);
    if (!t->indexed)
        return;
    setIndexed(r, t, 0);
    addr = copyAddresses(t->cat);
    if (addr)
        r->kernel.removeRecordIndex((uint32_t)t->pid, addr, t->cat->count);
    free(addr);
}

void ebpfMonRecordTablesRemove(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const ebpfMonTables *tables = r->kernel.tables;
    uint32_t slot = t->slot, count;

    if (slot == UINT32_MAX)
        return;
    count = t->cat->count;
    ebpfMonRecordTablesRemoveIndex(r, t);
    clearSlots(r, t);
    memset((void *)&tables->conf[slot], 0, count * sizeof(tables->conf[0]));
    memset((void *)&tables->state[slot], 0, count * sizeof(tables->state[0]));
    r->kernel.removeRoots(slot, count);
    ebpfMonSlotAllocatorReturn(r->slots, slot, count);
    ebpfMonClosureTableRemove(r->closures, t);
}

void ebpfMonRecordTablesSetShown(ebpfMonRecordTables *r, ebpfMonTarget *t, const char *pattern)
{
    uint32_t shown = 0;
    uint8_t *match;

    if (t->slot == UINT32_MAX)
        return;
    match = malloc((size_t)t->cat->count + 1);
    if (!match)
        return;
    for (uint32_t i = 0; i < t->cat->count; i++)
        shown += match[i] = !!epicsStrGlobMatch(ebpfMonCatalogueName(t->cat, i), pattern);
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++)
        t->how[i] = (uint8_t)((t->how[i] & ~EBPFMON_SHOWN) | (match[i] ? EBPFMON_SHOWN : 0));
    t->shown = shown;
    ebpfMonTargetsUnlock(r->targets);
    free(match);
    ebpfMonClosureTableMarkWanted(r->closures, t);
}

void ebpfMonRecordTablesBeginCounting(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonMem *mem = t->follower.mem;

    (void)r;
    if (t->slot == UINT32_MAX)
        return;
    ebpfMonMemFlush(mem);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];
        uint64_t addr = t->cat->rec[i].addr, time;
        uint8_t pact = 0;

        if (ebpfMonMemRead(mem, addr + t->cat->common.time, &time, sizeof(time)) == 0)
            st->time = time;
        st->pending = 0;
        ebpfMonMemRead(mem, addr + t->cat->common.pact, &pact, sizeof(pact));
        st->noted = pact ? EBPFMON_NOTED_BUSY : 0;
    }
    ebpfMonMemFlush(mem);
}
