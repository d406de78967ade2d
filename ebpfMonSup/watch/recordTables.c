/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <epicsString.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/shares.h"
#include "common/worker.h"
#include "model/audits.h"
#include "watch/followed.h"
#include "watch/recordTables.h"
#include "watch/recordTablesOwn.h"
#include "watch/sweeps.h"
#include "watch/typeTrial.h"

/* --- shares of IOCs ---
 *
 * Whose records are counted, if the tables have no room for all: each user has a share (common/shares.h). The follower
 * alone. */

static ebpfMonShare makeShare(const ebpfMonTarget *t)
{
    return (ebpfMonShare){ .user = t->user, .isSystem = t->user < EBPFMON_SYSTEM_USERS, .order = t->iocId,
                           .size = t->cat->count };
}

/* The IOCs that give up their places, so that the tables have no more than "room" records with those of "t", which
 * has no places yet. "victims" has room for EBPFMON_TARGETS_MAX. Returns their number; 0: none does, and "t" gets
 * none. */
static unsigned findVictims(ebpfMonTargets *targets, const ebpfMonTarget *t, uint64_t room, ebpfMonTarget **victims)
{
    ebpfMonTarget *of[EBPFMON_TARGETS_MAX];
    ebpfMonShare share[EBPFMON_TARGETS_MAX + 1];
    unsigned count = 0, found = 0;

    for (ebpfMonTarget *o = ebpfMonTargetsGetFirst(targets); o && count < EBPFMON_TARGETS_MAX; o = o->next)
        if (o != t && o->slot != UINT32_MAX && o->cat) {
            share[count] = makeShare(o);
            of[count++] = o;
        }
    share[count] = makeShare(t);
    share[count].order = UINT64_MAX;
    ebpfMonSharesFit(share, count + 1, room);
    if (share[count].isOut)
        return 0;
    for (unsigned i = 0; i < count; i++)
        if (share[i].isOut) {
            if (ebpfMonMemIsPaused(of[i]->followed->mem)) /* it is being read, while others are looked at */
                return 0;
            victims[found++] = of[i];
        }
    return found;
}

/* The first of so many slots. UINT32_MAX: there is no room; errno is ENOSPC if the tables are full, otherwise the
 * kernel gives no memory for them. */
static uint32_t takeSlots(ebpfMonRecordTables *r, uint32_t count)
{
    uint32_t slot = ebpfMonSlotAllocatorTake(r->slots, count);
    int error = ENOSPC;

    if (slot != UINT32_MAX) {
        if (ebpfMonTablesUse(r->kernel.tables, slot + count, 0) == 0)
            return slot;
        error = errno;
        ebpfMonSlotAllocatorReturn(r->slots, slot, count);
    }
    errno = error;
    return UINT32_MAX;
}

/* --- the slot of a record by its address --- */

/* malloc'ed; NULL without memory. */
static uint64_t *copyAddresses(const ebpfMonCatalogue *cat)
{
    uint64_t *a = malloc(((size_t)cat->count + 1) * sizeof(*a));

    for (uint32_t i = 0; a && i < cat->count; i++)
        a[i] = cat->rec[i].addr;
    return a;
}

/* Record i gets slot "slot" + i. 0, or -1: there is no room, or no memory. */
static int addIndex(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, uint32_t slot)
{
    uint64_t *addr = copyAddresses(t->cat);
    int rc = addr ? kernel->setRecordIndex((uint32_t)t->pid, addr, t->cat->count, slot) : -1;

    free(addr);
    return rc;
}

static void removeIndex(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t)
{
    uint64_t *addr = copyAddresses(t->cat);

    if (addr)
        kernel->removeRecordIndex((uint32_t)t->pid, addr, t->cat->count);
    free(addr);
}

/* --- tables of records --- */

ebpfMonRecordTables *ebpfMonRecordTablesNew(ebpfMonTargets *targets, ebpfMonAudits *audits,
                                            const ebpfMonRecordTablesKernel *kernel)
{
    ebpfMonRecordTables *r = calloc(1, sizeof(*r));

    if (!r)
        return NULL;
    r->targets = targets;
    r->audits = audits;
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

/* Where its array fields have their elements. */
static void setArrays(ebpfMonRecordTables *r, ebpfMonTarget *t, int on)
{
    const ebpfMonCatalogue *cat = t->cat;

    if (t->followed->records.hasArrays == on)
        return; /* its pid may be that of another IOC by now, which has the same addresses */
    t->followed->records.hasArrays = on;
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

/* Reads the links of one record, or of EBPFMON_ALL_RECORDS, into the catalogue. Nonzero: they are not what they were.
 * The event thread reads them for its traces, so what is read waits outside until it is whole. */
static int readLinks(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t index)
{
    ebpfMonRecordLinks *links;
    uint8_t *missed = NULL;
    int differ, hasSlots = t->slot != UINT32_MAX;

    ebpfMonMemAllowPause(t->followed->mem, index == EBPFMON_ALL_RECORDS);
    links = ebpfMonRecordLinksRead(t->followed->mem, t->cat, index);
    ebpfMonMemAllowPause(t->followed->mem, 0);
    if (!links)
        return 0;
    if (index == EBPFMON_ALL_RECORDS || ebpfMonRecordLinksCountOdd(links))
        t->followed->odd.links = ebpfMonRecordLinksCountOdd(links) +
                               !!ebpfMonMemIsOver(t->followed->mem); /* then some were not read */
    differ = ebpfMonRecordLinksDiffer(t->cat, links);
    if (differ && hasSlots && (missed = calloc((size_t)t->cat->count + 1, 1)) != NULL)
        ebpfMonRecordLinksFindMissed(t->cat, links, missed);
    ebpfMonTargetsLock(r->targets);
    ebpfMonRecordLinksExchange(t->cat, links);
    ebpfMonTargetsUnlock(r->targets);
    if (differ && hasSlots)
        ebpfMonRecordTablesMarkReached(r, t, missed);
    free(missed);
    ebpfMonRecordLinksFree(links);
    return differ;
}

/* The members of a target that a slot brings along. 0, or -1 without memory: then none is set. */
static int setSlots(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t slot)
{
    const ebpfMonArrayPart parts[] = {
        EBPFMON_PART(t->how), EBPFMON_PART(t->unseen), EBPFMON_PART(t->adjust),
    };

    ebpfMonTargetsLock(r->targets);
    t->followed->records.arrays = ebpfMonArraysMake((size_t)t->cat->count + 1, parts, sizeof(parts) / sizeof(parts[0]));
    if (!t->followed->records.arrays) {
        ebpfMonTargetsUnlock(r->targets);
        return -1;
    }
    t->hasUnseen = 0;
    t->slot = slot;
    t->closures.moved = 0;
    t->followed->clock.isAhead = 0;
    t->followed->records.counted = 0;
    t->slotAt = ebpfMonClockMonotonic();
    t->recState = &r->kernel.tables->state[slot];
    ebpfMonTargetsUnlock(r->targets);
    return 0;
}

static void clearSlots(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonStretches *stretch[2] = { t->closures.stretch[0], t->closures.stretch[1] };

    ebpfMonTargetsLock(r->targets);
    t->slot = UINT32_MAX;
    t->recState = NULL;
    t->closures.stretch[0] = t->closures.stretch[1] = NULL;
    t->how = t->unseen = NULL;
    t->adjust = NULL;
    t->shown = 0;
    ebpfMonTargetsUnlock(r->targets);
    t->followed->trapped = 0;
    ebpfMonTypeTrialFree(t->followed->trial);
    t->followed->trial = NULL;
    free(t->followed->records.resumed);
    t->followed->records.resumed = NULL;
    ebpfMonStretchesFree(stretch[0]);
    ebpfMonStretchesFree(stretch[1]);
    free(t->followed->records.arrays);
    t->followed->records.arrays = NULL;
}

/* Nonzero: the record is, or was, in a scan list, so it is the root of a chain. */
static int isInScanList(const ebpfMonTarget *t, const ebpfMonRecord *rec)
{
    uint16_t spvt = t->cat->common.spvt;
    uint64_t element = 0;

    return spvt && ebpfMonMemRead(t->followed->mem, rec->addr + spvt, &element, sizeof(element)) == 0 && element;
}

/* What the tables by slot begin with. */
static void writeSlots(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const ebpfMonCatalogue *cat = t->cat;

    ebpfMonMemAllowPause(t->followed->mem, 1);
    for (uint32_t i = 0; i < cat->count; i++) {
        volatile struct ebpfMonRecConf *conf = &r->kernel.tables->conf[t->slot + i];
        struct ebpfMonRecState st = { .addr = cat->rec[i].addr, .last = t->slot + i };
        const ebpfMonRecType *rt = &cat->rtype[cat->rec[i].rtype];
        const ebpfMonField *val = rt->valField >= 0 ? &cat->field[rt->valField] : NULL;

        conf->len = 0;
        conf->valOff = val && !val->arrayCount ? val->offset : 0;
        conf->valSize = val ? (uint8_t)(val->size > 16 ? 16 : val->size) : 0;
        if (isInScanList(t, &cat->rec[i]))
            st.root = r->kernel.takeRoot(t->slot + i);
        st.seen = ebpfMonMemRead(t->followed->mem, cat->rec[i].addr + cat->common.time, &st.time, sizeof(st.time)) == 0;
        memcpy((void *)&t->recState[i], &st, sizeof(st));
    }
    ebpfMonMemAllowPause(t->followed->mem, 0);
}

static void setIndexed(ebpfMonRecordTables *r, ebpfMonTarget *t, int indexed)
{
    ebpfMonTargetsLock(r->targets);
    t->indexed = indexed;
    ebpfMonTargetsUnlock(r->targets);
}

static void giveUpRecords(ebpfMonRecordTables *r, ebpfMonTarget *victim)
{
    ebpfMonTargetSetNote(r->targets, victim,
                         "its records gave way to those of another user, who has fewer: raise maxRecords of "
                         "ebpfMonConfigure; puts only", 0);
    ebpfMonRecordTablesRemove(r, victim);
    victim->followed->database.readAt = 0; /* its level is applied anew at the next look */
}

/* As takeSlots. If the tables are full, IOCs of users who have more give up theirs. */
static uint32_t takeShare(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    uint64_t room = r->kernel.tables->size.maxRecords;
    ebpfMonTarget *victims[EBPFMON_TARGETS_MAX];
    unsigned count = 0, taken = 0;
    uint32_t slot;

    do {
        for (unsigned i = 0; i < count; i++)
            giveUpRecords(r, victims[i]);
        taken += count;
        slot = takeSlots(r, t->cat->count);
        if (slot != UINT32_MAX || errno != ENOSPC || t->followed->records.hasNoShare)
            return slot;
        if (taken) /* the room is in pieces: one more must go */
            room = ebpfMonSlotAllocatorCountUsed(r->slots) + t->cat->count - 1ull;
        count = findVictims(r->targets, t, room, victims);
    } while (count);
    t->followed->records.hasNoShare = taken != 0; /* else it would take places in vain again and again */
    errno = ENOSPC;
    return slot;
}

/* What to do if there is no room, by errno. */
static const char *findRemedy(void)
{
    return errno == ENOSPC ? "raise maxRecords of ebpfMonConfigure" : "the kernel gives no memory for more records";
}

int ebpfMonRecordTablesAdd(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const char *trouble = NULL;
    char note[EBPFMON_NOTE_SIZE];
    ebpfMonClosures *c;
    uint32_t slot;

    slot = takeShare(r, t);
    if (slot == UINT32_MAX) {
        snprintf(note, sizeof(note), "its %u records do not fit any more: %s; puts only", t->cat->count, findRemedy());
        ebpfMonTargetSetNote(r->targets, t, note, 0);
        return -1;
    }
    ebpfMonTypeTrialSetTypes(t->cat, t->followed->mem);
    readLinks(r, t, EBPFMON_ALL_RECORDS);
    ebpfMonWorkerGiveSignHere(); /* the next steps read nothing, and each of them takes a part of a second for 500,000
                                  * records */
    c = ebpfMonClosureTableMakeClosures(t->cat);
    ebpfMonWorkerGiveSignHere();
    if (!c || setSlots(r, t, slot)) {
        ebpfMonSlotAllocatorReturn(r->slots, slot, t->cat->count);
        ebpfMonTargetSetNote(r->targets, t, "no memory for its records: puts only", 0);
        ebpfMonClosuresFree(c);
        return -1;
    }
    writeSlots(r, t);
    if (ebpfMonClosureTableInstall(r->closures, t, c)) {
        snprintf(note, sizeof(note), "its chains do not fit any more: %s; puts only", findRemedy());
        trouble = note;
    } else {
        ebpfMonWorkerGiveSignHere();
        t->followed->trial = ebpfMonTypeTrialNew(t->cat, r->audits);
        ebpfMonRecordTablesMarkTrapped(r, t, c);
        setIndexed(r, t, 1);
        setArrays(r, t, 1);
        if (addIndex(&r->kernel, t, slot))
            trouble = "the table of records is full: raise maxRecords of ebpfMonConfigure; puts only";
    }
    ebpfMonClosuresFree(c);
    if (!trouble)
        return 0;
    ebpfMonTargetSetNote(r->targets, t, trouble, 0);
    ebpfMonRecordTablesRemove(r, t);
    return -1;
}

void ebpfMonRecordTablesUpdateLinks(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t index)
{
    ebpfMonClosures *c;

    if (t->slot == UINT32_MAX)
        return;
    ebpfMonRecordTablesTakeUnseen(r, t);
    if (!readLinks(r, t, index))
        return;
    c = ebpfMonClosureTableMakeClosures(t->cat);
    ebpfMonClosureTableBeginChange(r->closures, t);
    if (c && ebpfMonRecordTablesInstall(r, t, c) == 0) {
        ebpfMonRecordTablesMarkTrapped(r, t, c);
    } else {
        ebpfMonRecordTablesMarkMissed(r, t);
        ebpfMonTargetSetNote(r->targets, t, "a change of links could not be followed: raise maxRecords of "
                             "ebpfMonConfigure", 0);
    }
    ebpfMonClosureTableEndChange(r->closures, t);
    ebpfMonClosuresFree(c);
}

void ebpfMonRecordTablesReserve(ebpfMonRecordTables *r)
{
    r->kernel.reserveRoots();
}

void ebpfMonRecordTablesRemoveIndex(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonSweepsRemove(&r->kernel, t);
    t->followed->sweep.number = 0;
    t->followed->sweep.lost = 0;
    setArrays(r, t, 0);
    if (!t->indexed)
        return;
    setIndexed(r, t, 0);
    removeIndex(&r->kernel, t);
}

void ebpfMonRecordTablesRemove(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    const ebpfMonTables *tables = r->kernel.tables;
    uint32_t slot = t->slot, count;

    ebpfMonRecordTablesRemoveIndex(r, t);
    if (slot == UINT32_MAX)
        return;
    count = t->cat->count;
    clearSlots(r, t);
    memset((void *)&tables->conf[slot], 0, count * sizeof(tables->conf[0]));
    memset((void *)&tables->state[slot], 0, count * sizeof(tables->state[0]));
    r->kernel.removeRoots(slot, count);
    r->kernel.removeAsyncs(slot, count);
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
    ebpfMonClosureTableMarkTraced(r->closures, t);
}

/* What processed unseen is not counted any more. */
static void markRecord(ebpfMonRecordTables *r, ebpfMonTarget *t, uint32_t index)
{
    ebpfMonTargetsLock(r->targets);
    t->how[index] |= EBPFMON_MISSED;
    ebpfMonTargetsUnlock(r->targets);
}

/* If probes of other places count meanwhile (ebpfMonAttachWay), there is no interruption. */
static void beginInterruptionEnd(ebpfMonRecordTables *r, ebpfMonTarget *t, int wasInterrupted)
{
    free(t->followed->records.resumed);
    t->followed->records.resumed = NULL;
    if (!wasInterrupted || t->followed->att.on & EBPFMON_BIT(ebpfMonProgUnlock))
        return;
    t->followed->records.resumed = calloc((size_t)t->cat->count + 1, sizeof(*t->followed->records.resumed));
    if (!t->followed->records.resumed)
        ebpfMonRecordTablesMarkMissed(r, t);
}

static void endInterruption(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        uint64_t time;

        if (ebpfMonMemRead(t->followed->mem, t->cat->rec[i].addr + t->cat->common.time, &time, sizeof(time)) ||
            time != t->followed->records.resumed[i])
            markRecord(r, t, i);
    }
    free(t->followed->records.resumed);
    t->followed->records.resumed = NULL;
}

/* For a record that was busy, and completed while the probes were being attached. Else the next chain that begins it
 * would be taken for one that only finds it busy. */
static void forgetCompleted(ebpfMonTarget *t)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        uint8_t *noted = (uint8_t *)&t->recState[i].noted, was = EBPFMON_NOTED_BUSY, pact;

        if (*(volatile uint8_t *)noted == EBPFMON_NOTED_BUSY &&
            ebpfMonMemRead(t->followed->mem, t->cat->rec[i].addr + t->cat->common.pact, &pact, sizeof(pact)) == 0 &&
            !pact)
            __atomic_compare_exchange_n(noted, &was, 0, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

void ebpfMonRecordTablesSettleCounting(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    ebpfMonMem *mem = t->followed->mem;

    if (!t->followed->records.resumed && !t->followed->records.busyAtBegin)
        return;
    ebpfMonMemFlush(mem);
    ebpfMonMemAllowPause(mem, 1);
    if (t->followed->records.resumed)
        endInterruption(r, t);
    if (t->followed->records.busyAtBegin)
        forgetCompleted(t);
    t->followed->records.busyAtBegin = 0;
    ebpfMonMemAllowPause(mem, 0);
    ebpfMonMemFlush(mem);
}

void ebpfMonRecordTablesBeginCounting(ebpfMonRecordTables *r, ebpfMonTarget *t, int wasInterrupted)
{
    ebpfMonMem *mem = t->followed->mem;

    if (t->slot == UINT32_MAX)
        return;
    ebpfMonMemFlush(mem);
    ebpfMonMemAllowPause(mem, 1);
    beginInterruptionEnd(r, t, wasInterrupted);
    t->followed->records.busyAtBegin = 0;
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];
        uint64_t addr = t->cat->rec[i].addr, time;
        uint8_t pact = 0;

        if (ebpfMonMemRead(mem, addr + t->cat->common.time, &time, sizeof(time)) == 0) {
            /* a record that only the trap counts may have processed without a new time stamp */
            if (wasInterrupted && (t->how[i] & EBPFMON_BY_TRAP ||
                                   ebpfMonClosureTableHasMoved(r->kernel.tables->state, st, st->time, time)))
                markRecord(r, t, i);
            if (t->followed->records.resumed)
                t->followed->records.resumed[i] = time;
            st->time = time;
            if (!t->followed->clock.isAhead && !(t->cat->rec[i].flags & EBPFMON_REC_TSE) && ebpfMonClockIsAhead(time))
                t->followed->clock.isAhead = t->followed->clock.wentBack = 1; /* its next stamp may be earlier */
        } else { /* the time stamp from before would count what processed unseen. The kernel part's first look notes
                  * it */
            st->seen = 0;
            markRecord(r, t, i);
        }
        st->pending = 0;
        ebpfMonMemRead(mem, addr + t->cat->common.pact, &pact, sizeof(pact));
        st->noted = pact ? EBPFMON_NOTED_BUSY : 0;
        t->followed->records.busyAtBegin |= pact;
    }
    ebpfMonMemAllowPause(mem, 0);
    if (ebpfMonMemIsOver(mem)) /* what some began with is not known */
        ebpfMonRecordTablesMarkMissed(r, t);
    ebpfMonMemFlush(mem);
}
