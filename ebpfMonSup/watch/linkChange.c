/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "watch/closureTable.h"
#include "watch/linkChange.h"

struct ebpfMonLinkChange {
    const ebpfMonTables *tables;
    uint64_t since;      /* what was counted from then on may not be all */
    uint32_t count;
    uint32_t index[];    /* the records */
};

/* A byte for each record: nonzero if this record reaches it by the new links and did not by the old ones. NULL
 * without memory. */
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
                                        uint32_t index, uint64_t since)
{
    uint8_t *isNew = markNew(tables, t, c, index);
    ebpfMonLinkChange *change;

    if (!isNew)
        return NULL;
    change = calloc(1, sizeof(*change) + c->len[index] * sizeof(change->index[0]));
    for (uint32_t i = 0; change && i < t->cat->count; i++)
        if (isNew[i])
            change->index[change->count++] = i;
    if (change) {
        change->tables = tables;
        change->since = since;
    }
    free(isNew);
    return change;
}

void ebpfMonLinkChangeFree(ebpfMonLinkChange *change)
{
    free(change);
}

/* Nonzero: the kernel part has counted the record since then, alone or with its stretch. Call it after the
 * comparison of the time stamp, so that a count in between shows here. */
static int isCountedSince(const ebpfMonTables *tables, const ebpfMonTarget *t, uint32_t index, uint64_t since)
{
    volatile struct ebpfMonRecState *st = &t->recState[index];

    return st->stamp >= since || tables->state[st->last].stamp >= since ||
           (t->follower.leftAt && t->follower.leftAt[index] >= since);
}

/* Nonzero: it has processed since it was counted last; it was counted since the put, but perhaps not all that it
 * processed before; or it could not be read, because on a busy host the memory may not answer in time. Also if it is
 * busy: it may have processed before that, too. */
static int isMissed(const ebpfMonLinkChange *change, const ebpfMonTarget *t, uint32_t index)
{
    volatile struct ebpfMonRecState *st = &t->recState[index];
    uint64_t was = st->time, time;

    if (t->how[index] & EBPFMON_BY_TRAP)
        return 0;
    if (!st->pending &&
        (ebpfMonMemReadNow(t->pid, t->cat->rec[index].addr + t->cat->common.time, &time, sizeof(time)) ||
         ebpfMonClosureTableHasMoved(change->tables->state, st, was, time)))
        return 1;
    return isCountedSince(change->tables, t, index, change->since);
}

void ebpfMonLinkChangeMark(const ebpfMonLinkChange *change, ebpfMonTargets *targets, ebpfMonTarget *t)
{
    for (uint32_t i = 0; change && i < change->count; i++)
        if (isMissed(change, t, change->index[i])) {
            ebpfMonTargetsLock(targets);
            t->how[change->index[i]] |= EBPFMON_MISSED;
            ebpfMonTargetsUnlock(targets);
        }
}

/* What one put that was superseded may have processed. */
typedef struct {
    const ebpfMonTables *tables;
    ebpfMonTarget *t;
    uint64_t since;
    const ebpfMonLinkEdge *edges;
    unsigned  edgeCount;
    uint8_t  *isFound; /* by record */
    uint32_t *queue;   /* those that were found */
    uint32_t  queued;
} unseenSearch;

static void findOne(unseenSearch *s, uint32_t index)
{
    if (s->isFound[index])
        return;
    s->isFound[index] = 1;
    s->queue[s->queued++] = index;
}

/* All that this record reaches. */
static void findReachedRecords(unseenSearch *s, uint32_t index)
{
    const ebpfMonCatalogue *cat = s->t->cat;

    findOne(s, index);
    for (uint32_t at = 0; at < s->queued; at++) {
        const ebpfMonRecord *rec = &cat->rec[s->queue[at]];

        for (uint32_t k = 0; k < rec->toCount; k++)
            findOne(s, rec->to[k]);
        for (unsigned e = 0; e < s->edgeCount; e++) {
            long to = s->edges[e].from == rec->addr ? ebpfMonCatalogueFindAddr(cat, s->edges[e].to) : -1;

            if (to >= 0)
                findOne(s, (uint32_t)to);
        }
    }
}

/* Nonzero: it may have processed since then without being counted. */
static int mayHaveProcessed(const unseenSearch *s, uint32_t index)
{
    volatile struct ebpfMonRecState *st = &s->t->recState[index];
    const ebpfMonRecord *rec = &s->t->cat->rec[index];
    uint64_t was = st->time, time;

    if (s->t->how[index] & EBPFMON_BY_TRAP)
        return 0;
    if (rec->flags & EBPFMON_REC_UNDEFINED ||
        ebpfMonMemRead(s->t->follower.mem, rec->addr + s->t->cat->common.time, &time, sizeof(time)))
        return 1;
    return ebpfMonClosureTableHasMoved(s->tables->state, st, was, time) ||
           isCountedSince(s->tables, s->t, index, s->since);
}

void ebpfMonLinkChangeMarkSuperseded(const ebpfMonTables *tables, ebpfMonTargets *targets, ebpfMonTarget *t,
                                     const ebpfMonLinkPut *put, const ebpfMonLinkEdge *edges, unsigned edgeCount)
{
    unseenSearch s = { .tables = tables, .t = t, .since = put->at, .edges = edges, .edgeCount = edgeCount };
    long start = ebpfMonCatalogueFindAddr(t->cat, put->stops ? put->precord : put->target);

    s.isFound = calloc((size_t)t->cat->count + 1, 1);
    s.queue = malloc(((size_t)t->cat->count + 1) * sizeof(*s.queue));
    if (start >= 0 && s.isFound && s.queue)
        findReachedRecords(&s, (uint32_t)start);
    for (uint32_t i = 0; i < s.queued; i++) {
        uint32_t r = s.queue[i];

        /* of the first its time stamp may not tell */
        if (!(i == 0 && put->stops && !(t->how[r] & EBPFMON_BY_TRAP)) && !mayHaveProcessed(&s, r))
            continue;
        ebpfMonTargetsLock(targets);
        t->how[r] |= EBPFMON_MISSED;
        ebpfMonTargetsUnlock(targets);
    }
    free(s.isFound);
    free(s.queue);
}
