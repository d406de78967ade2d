/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of targets, and what anybody may know of one. */
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsStdio.h>

#include "monitor/target.h"
#include "probe/loader.h"

static epicsMutexId lock; /* guards the list and what other threads read of targets */
static ebpfMonTarget *list;
static uint32_t lastId;

ebpfMonCosts ebpfMonCost;

void ebpfMonTargetsInit(void)
{
    lock = epicsMutexMustCreate();
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
}

uint64_t ebpfMonTargetCount(const ebpfMonTarget *t, uint32_t i)
{
    const ebpfMonTables *tab = ebpfMonLoaded();
    volatile struct ebpfMonRecState *st;

    if (!tab || t->slot == UINT32_MAX)
        return 0;
    st = &tab->state[t->slot + i];
    if ((t->how[i] & (EBPFMON_BY_TRAP | EBPFMON_AT_LEAST)) == EBPFMON_BY_TRAP)
        return st->trapped + (uint64_t)t->adjust[i];
    return st->count + (uint64_t)t->adjust[i];
}

unsigned ebpfMonTargetsTroubles(char *buf, size_t size)
{
    unsigned n = 0;

    buf[0] = 0;
    for (ebpfMonTarget *t = list; t; t = t->next)
        if (!t->gone && t->note[0] && n++ == 0)
            epicsSnprintf(buf, size, "%s: %s", t->name, t->note);
    return n;
}
