/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include "ioc/baseLayout.h"
#include "common/array.h"
#include "watch/closureTable.h"
#include "watch/followed.h"
#include "watch/sweeps.h"

/* --- the plan --- */

#define FIRST_PERIODIC 3 /* menuScan.dbd: Passive, Event, I/O Intr, and then the periods */
#define LONG_CHAINS    8 /* looks a root: from here on the stretches of chains cost less (closureTable.c) */
#define UNLOOKED       6 /* so many records of a stretch cost a sweep as much as one look */
#define NO_ROOT        UINT32_MAX

/* A record in a scan list. */
typedef struct {
    uint64_t mutex; /* of the list */
    uint32_t index;
} Root;

typedef struct {
    const ebpfMonTarget *t;
    const ebpfMonCatalogue *cat;
    ebpfMonClosures *c;
    ebpfMonSweepPlan *plan;
    Root     *root;
    uint32_t  rootCount;
    uint16_t *scan;       /* by record: SCAN */
    uint32_t *owner;      /* by record: the root that makes it process, NO_ROOT: none */
    uint32_t *queue;
    uint32_t *added;      /* what is appended to the closures: the lists, then the groups */
    uint32_t  addedCount;
} Planner;

static int byList(const void *a, const void *b)
{
    const Root *x = a, *y = b;

    if (x->mutex != y->mutex)
        return x->mutex < y->mutex ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* The mutex of the scan list in which the record is; 0: it is in none. Returns 0; -1: the memory of the IOC does not
 * answer. */
static int readListOf(ebpfMonMem *mem, uint64_t spvt, uint64_t *mutex)
{
    uint64_t element, list;

    *mutex = 0;
    if (ebpfMonMemRead(mem, spvt, &element, sizeof(element)))
        return -1;
    if (!element)
        return 0;
    if (ebpfMonMemRead(mem, element + offsetof(struct layoutScanElement, pscan_list), &list, sizeof(list)))
        return -1;
    return list ? ebpfMonMemRead(mem, list + offsetof(struct layoutScanList, lock), mutex, sizeof(*mutex)) : 0;
}

/* Reads which records are in scan lists. If a put moves a record meanwhile, this put is seen elsewhere. 0, or -1: not
 * all could be read. */
static int readRoots(Planner *p)
{
    ebpfMonMem *mem = p->t->followed->mem;

    for (uint32_t i = 0; i < p->cat->count; i++) {
        const ebpfMonRecord *rec = &p->cat->rec[i];
        const ebpfMonField *scan = ebpfMonCatalogueFieldNamed(p->cat, rec->rtype, "SCAN");
        Root root = { .index = i };

        p->scan[i] = UINT16_MAX;
        if (!scan)
            continue;
        if (ebpfMonMemRead(mem, rec->addr + scan->offset, &p->scan[i], sizeof(p->scan[i])) ||
            readListOf(mem, rec->addr + p->cat->common.spvt, &root.mutex))
            return -1;
        p->plan->listOf[i] = root.mutex;
        if (root.mutex)
            p->root[p->rootCount++] = root;
    }
    qsort(p->root, p->rootCount, sizeof(*p->root), byList);
    return 0;
}

/* Nonzero: a link processes its target: only one that is passive (dbScanPassive), or by an output link to PROC. */
static int canProcess(const Planner *p, const ebpfMonRecord *rec, uint32_t k)
{
    const ebpfMonField *f = &p->cat->field[rec->to[rec->toCount + k]];

    return p->scan[rec->to[k]] == 0 || p->scan[rec->to[k]] == UINT16_MAX || f->type == ebpfMonDbfOutlink;
}

static void takeRecord(Planner *p, uint32_t index, uint32_t root, uint32_t *queued)
{
    if (p->owner[index] == root)
        return; /* by two ways from one root: the closures know that (EBPFMON_NODE_TWICE) */
    if (p->owner[index] != NO_ROOT) {
        p->plan->isShared[index] = 1;
        p->plan->fits = 0;
        return;
    }
    p->owner[index] = root;
    p->queue[(*queued)++] = index;
    p->added[p->addedCount++] = index;
}

/* All that one root makes process, itself first. */
static void followRoot(Planner *p, uint32_t root)
{
    uint32_t queued = 0;

    takeRecord(p, root, root, &queued);
    for (uint32_t at = 0; at < queued; at++) {
        const ebpfMonRecord *rec = &p->cat->rec[p->queue[at]];

        for (uint32_t k = 0; k < rec->toCount; k++)
            if (canProcess(p, rec, k))
                takeRecord(p, rec->to[k], root, &queued);
    }
}

static void makeLists(Planner *p)
{
    ebpfMonSweepPlan *plan = p->plan;

    for (uint32_t i = 0; i < p->rootCount; i++) {
        if (!i || p->root[i].mutex != p->root[i - 1].mutex)
            plan->list[plan->listCount++] = (ebpfMonSweptList){
                .mutex = p->root[i].mutex, .first = p->c->count + p->addedCount };
        followRoot(p, p->root[i].index);
        plan->list[plan->listCount - 1].len = p->c->count + p->addedCount - plan->list[plan->listCount - 1].first;
    }
}

static uint32_t findHead(uint32_t *group, uint32_t i)
{
    while (group[i] != i)
        i = group[i] = group[group[i]];
    return i;
}

/* Makes groups of the records that links connect, also by links that do not process, and appends the records of each
 * group that scan lists process. */
static void makeGroups(Planner *p)
{
    ebpfMonSweepPlan *plan = p->plan;
    uint32_t n = p->cat->count, swept = p->addedCount, at = p->c->count + swept;

    for (uint32_t i = 0; i < n; i++)
        plan->group[i] = i;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < p->cat->rec[i].toCount; k++)
            plan->group[findHead(plan->group, p->cat->rec[i].to[k])] = findHead(plan->group, i);
    for (uint32_t i = 0; i < n; i++)
        plan->group[i] = findHead(plan->group, i);
    for (uint32_t i = 0; i < swept; i++)
        plan->groupLen[plan->group[p->added[i]]]++;
    for (uint32_t i = 0; i < n; i++) {
        plan->groupFirst[i] = at;
        at += plan->groupLen[i];
        plan->groupLen[i] = 0;
    }
    for (uint32_t i = 0; i < swept; i++) {
        uint32_t head = plan->group[p->added[i]];

        p->added[plan->groupFirst[head] - p->c->count + plan->groupLen[head]++] = p->added[i];
        p->addedCount++;
    }
}

/* Nonzero: its time stamps show its processings, as trials have found (typeTrial.h). */
static int isKnownType(const ebpfMonRecType *type)
{
    return type->stamps == EBPFMON_STAMPS_BASE || type->stamps == EBPFMON_STAMPS_SEEN;
}

/* If this is not fulfilled, a record could process twice between two looks, or its time stamp would not show a
 * processing, or a list could have other records than we know. While the budget forbids the trap, the records that need
 * it are marked, in passes as in chains. So then they hinder nothing. */
static void judgePlan(Planner *p, int isSerial)
{
    int noTrap = p->t->followed->budget.noTrap;

    if (p->t->followed->trapped && !noTrap)
        p->plan->fits = 0;
    for (uint32_t i = 0; i < p->cat->count; i++)
        if (!(noTrap || isKnownType(&p->cat->rtype[p->cat->rec[i].rtype])) ||
            p->cat->rec[i].flags & EBPFMON_REC_SCANS)
            p->plan->fits = 0;
    for (uint32_t i = 0; i < p->rootCount && !isSerial; i++)
        if (p->scan[p->root[i].index] < FIRST_PERIODIC) { /* events and I/O Intr: by callbacks, or by a driver */
            p->plan->isShared[p->root[i].index] = 1;
            p->plan->fits = 0;
        }
}

/* A thread that enters looks at the closure of its record, and the last one that leaves at the whole group. */
static uint32_t findLongest(const Planner *p)
{
    uint32_t longest = 0;

    for (uint32_t i = 0; i < p->cat->count; i++) {
        if (p->c->len[i] > longest)
            longest = p->c->len[i];
        if (p->plan->groupLen[i] > longest)
            longest = p->plan->groupLen[i];
    }
    return longest;
}

/* The stretches of the scan lists, by place in the list of the closures. As in chains, but a forward link processes
 * only a passive record. NULL without memory. */
static uint8_t *findStretches(const Planner *p, uint32_t swept)
{
    uint32_t n = p->cat->count, at = 0;
    uint8_t *ahead = calloc((size_t)p->c->count + p->addedCount + 1, 1), *isActive = malloc((size_t)n + 1);
    ebpfMonStretches *s = NULL;

    for (uint32_t i = 0; i < swept; i++)
        p->queue[at++] = p->added[i];
    for (uint32_t i = 0; i < n; i++)
        if (p->owner[i] == NO_ROOT)
            p->queue[at++] = i;
    for (uint32_t i = 0; isActive && i < n; i++)
        isActive[i] = p->scan[i] != 0;
    if (ahead && isActive && at == n)
        s = ebpfMonClosureTableMakeStretches(p->t, p->c, p->queue, isActive);
    for (uint32_t i = 0; s && i < swept; i++)
        ahead[p->c->count + i] = s->ahead[p->added[i]];
    ebpfMonStretchesFree(s);
    free(isActive);
    return ahead;
}

static int appendAdded(Planner *p)
{
    uint32_t *list = realloc(p->c->list, ((size_t)p->c->count + p->addedCount + 1) * sizeof(*list));

    if (!list)
        return -1;
    memcpy(list + p->c->count, p->added, p->addedCount * sizeof(*list));
    p->c->list = list;
    p->c->count += p->addedCount;
    return 0;
}

static int makePlan(Planner *p, int isSerial)
{
    const ebpfMonCalls *calls = p->t->followed->att.core->calls;
    ebpfMonSweepPlan *plan = p->plan;
    uint32_t swept, looks = 0;

    plan->fits = 1;
    memset(p->owner, 0xff, p->cat->count * sizeof(*p->owner));
    if (readRoots(p))
        return -1;
    makeLists(p);
    swept = p->addedCount;
    judgePlan(p, isSerial);
    makeGroups(p);
    plan->longest = findLongest(p);
    p->c->ahead = findStretches(p, swept);
    for (uint32_t i = 0; i < swept; i++)
        looks += !p->c->ahead || !p->c->ahead[p->c->count + i];
    /* two traps a pass, at its begin and its end, with two sweeps where the end is not known for sure */
    plan->pays = looks + (swept - looks) / UNLOOKED <= LONG_CHAINS * p->rootCount &&
                 p->rootCount >= (calls && calls->endsOtherwise ? 4 * plan->listCount : 2 * plan->listCount + 4);
    return 0;
}

ebpfMonSweepPlan *ebpfMonSweepPlanMake(const ebpfMonTarget *t, ebpfMonClosures *c, int isSerial)
{
    size_t n = (size_t)t->cat->count + 1;
    ebpfMonSweepPlan *plan = calloc(1, sizeof(*plan));
    Planner p = { .t = t, .cat = t->cat, .c = c, .plan = plan };
    const ebpfMonArrayPart own[] = {
        EBPFMON_PART(p.root), EBPFMON_PART(p.scan), EBPFMON_PART(p.owner), EBPFMON_PART(p.queue),
        { &p.added, 2 * sizeof(*p.added) },
    };
    void *arrays = plan ? ebpfMonArraysMake(n, own, sizeof(own) / sizeof(own[0])) : NULL;
    int made = 0;

    if (arrays) {
        const ebpfMonArrayPart parts[] = {
            EBPFMON_PART(plan->list), EBPFMON_PART(plan->listOf), EBPFMON_PART(plan->group),
            EBPFMON_PART(plan->groupFirst), EBPFMON_PART(plan->groupLen), EBPFMON_PART(plan->isShared),
        };

        plan->records = t->cat->count;
        plan->arrays = ebpfMonArraysMake(n, parts, sizeof(parts) / sizeof(parts[0]));
        made = plan->arrays && makePlan(&p, isSerial) == 0 && appendAdded(&p) == 0;
    }
    free(arrays);
    if (made)
        return plan;
    ebpfMonSweepPlanFree(plan);
    return NULL;
}

void ebpfMonSweepPlanFree(ebpfMonSweepPlan *plan)
{
    if (!plan)
        return;
    free(plan->arrays);
    free(plan);
}

/* --- the tables --- */

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

        rc->groupFirst = t->closures.at + plan->groupFirst[plan->group[i]];
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
        if (t->followed->sweep.plan &&
            kernel->tables->state[was].inside & (EBPFMON_INSIDE_COUNT | EBPFMON_INSIDE_SKIPPED))
            t->how[i] |= EBPFMON_MISSED;
    }
}

int ebpfMonSweepsWrite(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, ebpfMonSweepPlan *plan)
{
    ebpfMonSweepPlan *before = t->followed->sweep.plan;

    for (uint32_t i = 0; i < plan->listCount; i++) {
        struct ebpfMonList list = { .first = t->closures.at + plan->list[i].first, .len = plan->list[i].len };

        if (kernel->setList((uint32_t)t->pid, plan->list[i].mutex, &list)) {
            emptyLists(kernel, t, plan, before);
            ebpfMonSweepPlanFree(plan);
            return -1;
        }
    }
    writeGroups(kernel, t, plan);
    emptyLists(kernel, t, before, plan);
    t->followed->sweep.plan = plan;
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
    if (t->followed->sweep.plan || t->followed->sweep.lost)
        kernel->removeLists((uint32_t)t->pid);
    ebpfMonSweepPlanFree(t->followed->sweep.plan);
    t->followed->sweep.plan = NULL;
}

uint8_t *ebpfMonSweepsFindUnsettled(const ebpfMonTarget *t)
{
    const ebpfMonCommon *common = &t->cat->common;
    uint8_t *unsettled = calloc((size_t)t->cat->count + 1, 1);
    ebpfMonMem *mem = t->followed->mem;

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
