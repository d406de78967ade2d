/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "watch/closureTable.h"
#include "watch/sweeps.h"

static const ebpfMonSweptList *findList(const ebpfMonSweepPlan *plan, uint64_t mutex)
{
    uint32_t from = 0, to = plan ? plan->listCount : 0; /* they are in the order of their mutexes */

    while (from < to) {
        uint32_t at = from + (to - from) / 2;

        if (plan->list[at].mutex == mutex)
            return &plan->list[at];
        if (plan->list[at].mutex < mutex)
            from = at + 1;
        else
            to = at;
    }
    return NULL;
}

/* Empties the lists of one plan that another does not have. The kernel part goes on noting their passes. */
static void emptyLists(const ebpfMonRecordTablesKernel *kernel, const ebpfMonTarget *t, const ebpfMonSweepPlan *plan,
                        const ebpfMonSweepPlan *other)
{
    for (uint32_t i = 0; plan && i < plan->listCount; i++)
        if (!findList(other, plan->list[i].mutex))
            kernel->setList((uint32_t)t->pid, plan->list[i].mutex, &(struct ebpfMonList){ 0 });
}

static void writeGroups(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, const ebpfMonSweepPlan *plan)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecConf *rc = &kernel->tables->conf[t->slot + i];

        rc->groupFirst = t->closureAt + plan->groupFirst[plan->group[i]];
        rc->groupLen = plan->groupLen[plan->group[i]];
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];
        uint32_t was = st->group, head = t->slot + plan->group[i];

        if (was == head)
            continue;
        st->group = head;
        /* a sweep may have left the old group out, and the thread inside looks only at the old group */
        if (t->follower.sweep.plan &&
            kernel->tables->state[was].inside & (EBPFMON_INSIDE_COUNT | EBPFMON_INSIDE_SKIPPED))
            t->how[i] |= EBPFMON_MISSED;
    }
}

int ebpfMonSweepsWrite(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, ebpfMonSweepPlan *plan)
{
    ebpfMonSweepPlan *before = t->follower.sweep.plan;

    for (uint32_t i = 0; i < plan->listCount; i++) {
        struct ebpfMonList list = { .first = t->closureAt + plan->list[i].first, .len = plan->list[i].len };

        if (kernel->setList((uint32_t)t->pid, plan->list[i].mutex, &list)) {
            emptyLists(kernel, t, plan, before);
            ebpfMonSweepPlanFree(plan);
            return -1;
        }
    }
    writeGroups(kernel, t, plan);
    emptyLists(kernel, t, before, plan);
    t->follower.sweep.plan = plan;
    ebpfMonSweepPlanFree(before);
    return 0;
}

void ebpfMonSweepsReset(ebpfMonTarget *t)
{
    for (uint32_t i = 0; i < t->cat->count; i++) {
        t->recState[i].inside = 0;
        t->recState[i].early = t->recState[i].unsure = 0;
    }
}

void ebpfMonSweepsRemove(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t)
{
    if (t->follower.sweep.plan || t->follower.sweep.lost)
        kernel->removeLists((uint32_t)t->pid);
    ebpfMonSweepPlanFree(t->follower.sweep.plan);
    t->follower.sweep.plan = NULL;
}

uint8_t *ebpfMonSweepsFindUnsettled(const ebpfMonTarget *t)
{
    const ebpfMonCommon *common = &t->cat->common;
    uint8_t *unsettled = calloc((size_t)t->cat->count + 1, 1);
    ebpfMonMem *mem = t->follower.mem;

    ebpfMonMemFlush(mem);
    for (uint32_t i = 0; unsettled && i < t->cat->count; i++) {
        volatile struct ebpfMonRecState *st = &t->recState[i];
        uint64_t addr = t->cat->rec[i].addr, was = st->time, time;
        uint8_t pact = 0;

        if (t->recState[st->group - t->slot].inside & EBPFMON_INSIDE_SKIPPED) {
            unsettled[i] = 1;
            continue;
        }
        unsettled[i] = ebpfMonMemRead(mem, addr + common->time, &time, sizeof(time)) ||
                       ebpfMonMemRead(mem, addr + common->pact, &pact, sizeof(pact));
        if (unsettled[i] || pact) /* not known; or what it has begun is counted when it completes */
            continue;
        unsettled[i] = ebpfMonClosureTableStampOrder(time) > ebpfMonClosureTableStampOrder(was) && st->time == was;
    }
    ebpfMonMemFlush(mem);
    return unsettled;
}

int ebpfMonSweepsAreSettled(const ebpfMonTarget *t)
{
    uint8_t *unsettled = ebpfMonSweepsFindUnsettled(t);
    int settled = unsettled && !memchr(unsettled, 1, t->cat->count);

    free(unsettled);
    return settled;
}
