/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of targets, and what anybody may know of one. */
#include <stdlib.h>
#include <string.h>

#include <epicsAtomic.h>
#include <epicsMutex.h>
#include <epicsStdio.h>

#include "monitor/target.h"
#include "probe/loader.h"

static epicsMutexId lock; /* guards the list and what other threads read of targets */
static ebpfMonTarget *list;
static uint32_t lastId;
static size_t changes;

ebpfMonCosts ebpfMonCost;

void ebpfMonTargetsInit(void)
{
    lock = epicsMutexMustCreate();
}

void ebpfMonTargetsChanged(void)
{
    epicsAtomicIncrSizeT(&changes);
}

size_t ebpfMonTargetsChanges(void)
{
    return epicsAtomicGetSizeT(&changes);
}

void ebpfMonTargetsLock(void)
{
    epicsMutexMustLock(lock);
}

void ebpfMonTargetsUnlock(void)
{
    epicsMutexUnlock(lock);
}

ebpfMonTarget *ebpfMonTargetsFirst(void)
{
    return list;
}

ebpfMonTarget *ebpfMonTargetById(uint32_t iocId)
{
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (t->iocId == iocId)
            return t;
    return NULL;
}

ebpfMonTarget *ebpfMonTargetByPid(pid_t pid)
{
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (t->pid == pid && !t->gone)
            return t;
    return NULL;
}

void ebpfMonTargetsAdd(ebpfMonTarget *t)
{
    ebpfMonTargetsLock();
    t->iocId = ++lastId;
    t->next = list;
    list = t;
    ebpfMonTargetsUnlock();
}

void ebpfMonTargetsRemove(ebpfMonTarget *t)
{
    ebpfMonTarget **p;

    ebpfMonTargetsLock();
    for (p = &list; *p && *p != t; p = &(*p)->next)
        ;
    if (*p)
        *p = t->next;
    ebpfMonTargetsUnlock();
    ebpfMonTargetsChanged();
}

uint64_t ebpfMonTargetPasses(const ebpfMonTarget *t, int bank, uint32_t i)
{
    const ebpfMonStretches *s = t->stretch[bank];
    volatile struct ebpfMonRecState *state = ebpfMonLoaded()->state;
    uint64_t sum = 0;

    if (!s || !s->ahead[i])
        return 0; /* the last record of a stretch is counted by itself */
    for (uint32_t r = i; r != EBPFMON_NO_RECORD; r = ebpfMonStretchBefore(s, r))
        sum += state[t->slot + r].pass[bank];
    return sum;
}

/* What was counted for this record alone. */
static uint64_t ownCount(const ebpfMonTarget *t, uint32_t i)
{
    volatile struct ebpfMonRecState *st = &ebpfMonLoaded()->state[t->slot + i];

    if ((t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST)) == EBPFMON_BY_TRAP)
        return st->trapped + (uint64_t)t->adjust[i];
    return st->count + (uint64_t)t->adjust[i];
}

uint64_t ebpfMonTargetCount(const ebpfMonTarget *t, uint32_t i)
{
    if (!ebpfMonLoaded() || t->slot == UINT32_MAX)
        return 0;
    return ownCount(t, i) + ebpfMonTargetPasses(t, 0, i) + ebpfMonTargetPasses(t, 1, i);
}

void ebpfMonTargetCounts(const ebpfMonTarget *t, uint64_t *now)
{
    volatile struct ebpfMonRecState *state = ebpfMonLoaded()->state;

    for (uint32_t i = 0; i < t->cat->count; i++)
        now[i] = ownCount(t, i);
    for (int bank = 0; bank < 2; bank++) {
        const ebpfMonStretches *s = t->stretch[bank];
        uint64_t sum = 0;

        for (uint32_t p = 0; s && p < s->n; p++) { /* in order, so that each stretch is gone through once */
            uint32_t r = s->order[p];

            if (ebpfMonStretchBefore(s, r) == EBPFMON_NO_RECORD)
                sum = 0;
            if (!s->ahead[r])
                continue;
            sum += state[t->slot + r].pass[bank];
            now[r] += sum;
        }
    }
}

unsigned ebpfMonTargetsTroubles(char *buf, size_t size)
{
    unsigned n = 0;

    buf[0] = 0;
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (!t->gone && t->note[0] && !t->remark && n++ == 0)
            epicsSnprintf(buf, size, "%s: %s", t->name, t->note);
    return n;
}
