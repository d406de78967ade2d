/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "watch/closureTable.h"
#include "watch/linkChange.h"

typedef struct {
    uint32_t index;
    int      processed;  /* since it was counted last */
    uint64_t was, time;  /* its time stamp as the kernel part noted it, and as it is in its memory */
} reached;

struct ebpfMonLinkChange {
    const ebpfMonTables *tables;
    uint32_t count;
    reached  rec[];
};

/* A byte for each record: nonzero for those that this one reaches now and did not before. NULL without memory. */
static uint8_t *markNew(const ebpfMonTables *tables, const ebpfMonTarget *t, const ebpfMonClosures *c, uint32_t index)
{
    volatile struct ebpfMonRecConf *rc = &tables->conf[t->slot + index];
    uint8_t *isNew = calloc((size_t)t->cat->count + 1, 1);

    for (uint32_t k = 0; isNew && k < c->len[index]; k++)
        isNew[c->list[c->first[index] + k]] = 1;
    for (uint32_t k = 0; isNew && k < rc->len; k++) {
        uint32_t r = EBPFMON_ENTRY_SLOT(tables->closure[rc->first + k]) - t->slot;

        if (r < t->cat->count)
            isNew[r] = 0;
    }
    return isNew;
}

ebpfMonLinkChange *ebpfMonLinkChangeNew(const ebpfMonTables *tables, const ebpfMonTarget *t, const ebpfMonClosures *c,
                                        uint32_t index)
{
    uint8_t *isNew = markNew(tables, t, c, index);
    ebpfMonLinkChange *change;

    if (!isNew)
        return NULL;
    change = calloc(1, sizeof(*change) + c->len[index] * sizeof(change->rec[0]));
    for (uint32_t i = 0; change && i < t->cat->count; i++)
        if (isNew[i])
            change->rec[change->count++].index = i;
    if (change)
        change->tables = tables;
    free(isNew);
    return change;
}

void ebpfMonLinkChangeFree(ebpfMonLinkChange *change)
{
    free(change);
}

static void lookAt(const ebpfMonLinkChange *change, const ebpfMonTarget *t, reached *r)
{
    volatile struct ebpfMonRecState *st = &t->recState[r->index];
    uint64_t addr = t->cat->rec[r->index].addr, last;
    uint8_t pact = 1;

    r->processed = 0;
    r->was = st->time;
    if ((t->how[r->index] & EBPFMON_BY_TRAP) || st->pending ||
        ebpfMonMemReadNow(t->pid, addr + t->cat->common.time, &r->time, sizeof(r->time)))
        return;
    last = change->tables->state[st->last].time;
    ebpfMonMemReadNow(t->pid, addr + t->cat->common.pact, &pact, sizeof(pact));
    r->processed = !pact && ebpfMonClosureTableStampOrder(r->time) > ebpfMonClosureTableStampOrder(r->was) &&
                   ebpfMonClosureTableStampOrder(r->time) > ebpfMonClosureTableStampOrder(last);
}

void ebpfMonLinkChangeCatchUp(ebpfMonLinkChange *change, ebpfMonTargets *targets, ebpfMonTarget *t)
{
    if (!change)
        return;
    /* First all of them are looked at, and only then is anything changed: one is compared with another's time. */
    for (uint32_t i = 0; i < change->count; i++)
        lookAt(change, t, &change->rec[i]);
    ebpfMonTargetsLock(targets);
    for (uint32_t i = 0; i < change->count; i++) {
        reached *r = &change->rec[i];

        /* else the kernel part has counted it since */
        if (r->processed && __atomic_compare_exchange_n((uint64_t *)&t->recState[r->index].time, &r->was, r->time, 0,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            t->adjust[r->index]++;
        if (r->processed) /* once at least: more than that its time stamp does not tell */
            t->how[r->index] |= EBPFMON_MISSED;
    }
    ebpfMonTargetsUnlock(targets);
}
