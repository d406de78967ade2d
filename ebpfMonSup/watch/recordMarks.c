/* SPDX-License-Identifier: BSD-3-Clause */
/* How each record is counted, and which counts are lower bounds (ebpfMonTarget.how): see recordTables.h and
 * recordTablesOwn.h. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "ioc/recordLinks.h"
#include "watch/followed.h"
#include "watch/recordTables.h"
#include "watch/recordTablesOwn.h"
#include "watch/typeTrial.h"

/* A byte for each record, nonzero: a link of another record makes it process. NULL without memory. */
static uint8_t *findReached(const ebpfMonCatalogue *cat)
{
    uint8_t *reached = calloc((size_t)cat->count + 1, 1);

    for (uint32_t i = 0; reached && i < cat->count; i++)
        for (uint32_t k = 0; k < cat->rec[i].toCount; k++)
            reached[cat->rec[i].to[k]] = 1;
    return reached;
}

/* What the trap is to look at, of this record. */
static void setWatch(ebpfMonTarget *t, uint32_t index)
{
    uint8_t stamps = *ebpfMonCatalogueStamps(t->cat, index), watch = 0;
    uint8_t type = t->cat->rtype[t->cat->rec[index].rtype].stamps;
    volatile struct ebpfMonRecState *st = &t->recState[index];

    if (stamps == EBPFMON_STAMPS_NOT || stamps == EBPFMON_STAMPS_ASLEEP ||
        (stamps == EBPFMON_STAMPS_UNKNOWN && type == EBPFMON_STAMPS_BASE))
        watch |= EBPFMON_WATCH_STAMPS;
    if (type != EBPFMON_STAMPS_BASE && type != EBPFMON_STAMPS_UNLOCKED)
        watch |= EBPFMON_WATCH_LOCK;
    if (watch & ~st->watch & EBPFMON_WATCH_STAMPS)
        st->trapSeen = (uint32_t)st->trapped;
    if (st->watch != watch)
        st->watch = watch;
}

/* Nonzero: it needs the trap, and its count is exact without it as long as nothing moves (watch/typeTrial.h). */
static int isAsleep(const ebpfMonTarget *t, uint32_t index)
{
    return t->how[index] & EBPFMON_MAY_SLEEP && *ebpfMonCatalogueStamps(t->cat, index) == EBPFMON_STAMPS_ASLEEP;
}

/* Nonzero: its time stamp may move without a processing. So the snapshot counts too much, and without the trap nothing
 * is counted. Of a histogram the flag may be for its SDEL. */
static int mayStampAlone(const ebpfMonTarget *t, uint32_t index)
{
    const ebpfMonRecType *type = &t->cat->rtype[t->cat->rec[index].rtype];
    uint8_t stamps = *ebpfMonCatalogueStamps(t->cat, index);

    if (type->stamps == EBPFMON_STAMPS_BASE)
        return stamps == EBPFMON_STAMPS_UNKNOWN || stamps == EBPFMON_STAMPS_NOT ||
               (t->cat->rec[index].flags & EBPFMON_REC_TSE && strcmp(type->name, "histogram") == 0);
    return type->stamps != EBPFMON_STAMPS_SEEN || t->cat->rec[index].flags & EBPFMON_REC_TSE;
}

/* From the one counter to the other, if "how" says so now, and the sum stays. "used": it was that of the trap. */
static void moveCount(ebpfMonTarget *t, uint32_t index, int used)
{
    const volatile struct ebpfMonRecState *st = &t->recState[index];

    if (used != ebpfMonTargetUsesTrap(t->how[index]))
        t->adjust[index] += (int64_t)(used ? st->trapped - st->count : st->count - st->trapped);
}

void ebpfMonRecordTablesMarkTrapped(ebpfMonRecordTables *r, ebpfMonTarget *t, const ebpfMonClosures *c)
{
    int trap = !!(t->followed->att.on & EBPFMON_BIT(ebpfMonProgCompleted));
    uint8_t *reached = findReached(t->cat), *behind = ebpfMonTypeTrialFindBehind(t->cat);

    t->followed->trapped = 0;
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        unsigned flags = t->cat->rec[i].flags;
        int needs = (c->flags[i] & EBPFMON_NODE_TWICE) || (flags & EBPFMON_REC_TSE) ||
                    ((flags & EBPFMON_REC_UNDEFINED) && (!reached || reached[i])) || !behind || behind[i];
        int want = needs || (flags & EBPFMON_REC_STAMPED), isExact;
        int wanted = t->how[i] & EBPFMON_BY_TRAP, was = wanted && !(t->how[i] & EBPFMON_AT_LEAST);
        int used = ebpfMonTargetUsesTrap(t->how[i]);

        want = want || (was && trap); /* until ebpfMonRecordTablesReleaseTrap */
        if (t->indexed && !want != !wanted)
            t->how[i] |= EBPFMON_MISSED;
        t->how[i] &= EBPFMON_SHOWN | EBPFMON_MISSED;
        if ((flags & (EBPFMON_REC_TSE | EBPFMON_REC_TIMED)) == EBPFMON_REC_TIMED)
            t->how[i] |= EBPFMON_MISSED;
        if (c->flags[i] & EBPFMON_NODE_TWICE)
            t->how[i] |= EBPFMON_TWICE;
        if (!needs && flags & EBPFMON_REC_STAMPED && ebpfMonTypeTrialHas(t->followed->trial, i))
            t->how[i] |= EBPFMON_MAY_SLEEP;
        isExact = want && (trap || isAsleep(t, i));
        if (want) {
            t->how[i] |= isExact ? EBPFMON_BY_TRAP : EBPFMON_BY_TRAP | EBPFMON_AT_LEAST;
            t->followed->trapped += !isAsleep(t, i);
        }
        if (mayStampAlone(t, i))
            t->how[i] |= EBPFMON_TRAP_ALONE;
        moveCount(t, i, used);
        setWatch(t, i);
    }
    ebpfMonTargetsUnlock(r->targets);
    free(reached);
    free(behind);
}

uint32_t ebpfMonRecordTablesMarkReached(ebpfMonRecordTables *r, ebpfMonTarget *t, uint8_t *reached)
{
    const uint8_t how = EBPFMON_BY_TRAP | EBPFMON_AT_LEAST | EBPFMON_MAY_SLEEP;
    const ebpfMonCatalogue *cat = t->cat;
    uint32_t *queue = malloc(((size_t)cat->count + 1) * sizeof(*queue)), count = 0, marked = 0;

    if (!queue || !reached) {
        free(queue);
        ebpfMonRecordTablesMarkMissed(r, t);
        return cat->count;
    }
    for (uint32_t i = 0; i < cat->count; i++)
        if (reached[i])
            queue[count++] = i;
    count = ebpfMonRecordLinksFollow(cat, reached, 1, queue, count);
    ebpfMonTargetsLock(r->targets);
    for (uint32_t at = 0; at < count; at++) {
        ebpfMonTypeTrialExcuse(t->followed->trial, t, queue[at]);
        if ((t->how[queue[at]] & how) == EBPFMON_BY_TRAP)
            continue;
        marked += !ebpfMonTargetIsAtLeast(t, queue[at]);
        t->how[queue[at]] |= EBPFMON_MISSED;
    }
    ebpfMonTargetsUnlock(r->targets);
    free(queue);
    return marked;
}

uint32_t ebpfMonRecordTablesMarkSince(ebpfMonRecordTables *r, ebpfMonTarget *t, uint64_t realNs)
{
    uint8_t *moved = calloc((size_t)t->cat->count + 1, 1);
    ebpfMonMem *mem = t->followed->mem;
    uint32_t marked;
    uint64_t time;

    ebpfMonMemFlush(mem);
    ebpfMonMemAllowPause(mem, 1);
    for (uint32_t i = 0; moved && i < t->cat->count; i++)
        moved[i] = ebpfMonMemRead(mem, t->cat->rec[i].addr + t->cat->common.time, &time, sizeof(time)) ||
                   ebpfMonClockIsSince(time, realNs);
    ebpfMonMemAllowPause(mem, 0);
    ebpfMonMemFlush(mem);
    marked = ebpfMonRecordTablesMarkReached(r, t, moved);
    free(moved);
    return marked;
}

void ebpfMonRecordTablesTakeUnseen(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    uint8_t *reached = calloc((size_t)t->cat->count + 1, 1);
    int areReached = 0;

    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; t->hasUnseen && i < t->cat->count; i++) {
        if (t->unseen[i])
            t->how[i] |= EBPFMON_MISSED;
        if (t->unseen[i] == EBPFMON_UNSEEN_REACHED) {
            areReached = 1;
            if (reached)
                reached[i] = 1;
        }
        t->unseen[i] = 0;
    }
    t->hasUnseen = 0;
    ebpfMonTargetsUnlock(r->targets);
    if (areReached)
        ebpfMonRecordTablesMarkReached(r, t, reached);
    free(reached);
}

void ebpfMonRecordTablesMarkMissed(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    if (t->slot == UINT32_MAX)
        return;
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++)
        t->how[i] |= EBPFMON_MISSED;
    ebpfMonTargetsUnlock(r->targets);
}

void ebpfMonRecordTablesSetTrap(ebpfMonRecordTables *r, ebpfMonTarget *t, int attached, int isFirst)
{
    if (t->slot == UINT32_MAX)
        return;
    if (attached)
        ebpfMonTypeTrialBegin(t->followed->trial, t, isFirst);
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        int used = ebpfMonTargetUsesTrap(t->how[i]);

        if (!(t->how[i] & EBPFMON_BY_TRAP) || isAsleep(t, i) || attached == !(t->how[i] & EBPFMON_AT_LEAST))
            continue;
        t->how[i] ^= EBPFMON_AT_LEAST;
        if (attached && !isFirst) /* what it processed unseen before stays uncounted */
            t->how[i] |= EBPFMON_MISSED;
        moveCount(t, i, used);
    }
    ebpfMonTargetsUnlock(r->targets);
}

void ebpfMonRecordTablesReleaseTrap(ebpfMonRecordTables *r, ebpfMonTarget *t)
{
    uint8_t *behind;

    if (t->slot == UINT32_MAX || !t->followed->trial || !t->followed->trapped ||
        !(behind = ebpfMonTypeTrialFindBehind(t->cat)))
        return;
    ebpfMonTargetsLock(r->targets);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        const volatile struct ebpfMonRecState *st = &t->recState[i];
        uint8_t stamps = *ebpfMonCatalogueStamps(t->cat, i);
        uint64_t trapped = st->trapped;

        setWatch(t, i);

        if ((t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST | EBPFMON_TWICE)) != EBPFMON_BY_TRAP ||
            t->cat->rec[i].flags & (EBPFMON_REC_TSE | EBPFMON_REC_UNDEFINED | EBPFMON_REC_STAMPED) || behind[i] ||
            (stamps != EBPFMON_STAMPS_SEEN && stamps != EBPFMON_STAMPS_BASE) ||
            !ebpfMonTypeTrialAgrees(t->followed->trial, t, i) || st->trapped != trapped)
            continue; /* a chain is under way */
        t->adjust[i] += ebpfMonTypeTrialGetAhead(t->followed->trial, i);
        t->how[i] &= (uint8_t) ~(EBPFMON_BY_TRAP | EBPFMON_TRAP_ALONE);
        t->followed->trapped--;
    }
    ebpfMonTargetsUnlock(r->targets);
    free(behind);
}

void ebpfMonRecordTablesFollowSleep(ebpfMonRecordTables *r, ebpfMonTarget *t, int trapOn, uint64_t now)
{
    if (t->slot == UINT32_MAX || !t->followed->trial)
        return;
    ebpfMonTargetsLock(r->targets);
    if (ebpfMonTypeTrialFollowSleep(t->followed->trial, t, trapOn, now)) {
        t->followed->trapped = 0;
        for (uint32_t i = 0; i < t->cat->count; i++)
            t->followed->trapped += t->how[i] & EBPFMON_BY_TRAP && !isAsleep(t, i);
    }
    ebpfMonTargetsUnlock(r->targets);
}
