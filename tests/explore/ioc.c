/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <bpf/bpf_tracing.h>
#include <linux/ptrace.h>

#include "ebpfMonTable.h"
#include "ebpfMonBase.h"
#include "explore.h"
#include "ioc.h"

_Static_assert(offsetof(iocLockRecord, set) == EBPFMON_LOCKRECORD_SET &&
               offsetof(iocLockRecord, precord) == EBPFMON_LOCKRECORD_PRECORD &&
               offsetof(iocElement, precord) == EBPFMON_SCANELEMENT_PRECORD &&
               offsetof(iocElement, list) == EBPFMON_SCANELEMENT_LIST && offsetof(iocList, first) == EBPFMON_SCANLIST_FIRST &&
               offsetof(iocAddr, special) == EBPFMON_DBADDR_SPECIAL && offsetof(iocLocker, maxrefs) == EBPFMON_LOCKER_MAXREFS &&
               offsetof(iocLocker, refs) == EBPFMON_LOCKER_REFS &&
               offsetof(iocRecord, time) - offsetof(iocRecord, pact) < EBPFMON_TIME_WINDOW &&
               offsetof(iocRecord, time) >= EBPFMON_TIME_WINDOW, "as in Base");

#define STACK_ENTRY 48 /* words: where the stack pointer of a thread's outermost function is */
#define STACK_FRAME 4
#define FIRST_PERIODIC 3 /* menuScan.dbd */
#define DBR_CHAR    1 /* one byte: the values do not matter */

/* What follows is no memory that threads share. */
#pragma clang section bss = ""

ioc *iocOne;
uint64_t iocProcessed[IOC_RECORDS_MAX], iocTraps;

/* By thread, and not shared: how deep it is on its stack. */
static unsigned depthOf[8];

/* --- probes ----------------------------------------------------------------------------------------------------- */

int ebpfmon_put(struct pt_regs *ctx);
int ebpfmon_put_return(struct pt_regs *ctx);
int ebpfmon_putfield(struct pt_regs *ctx);
int ebpfmon_lock(struct pt_regs *ctx);
int ebpfmon_pass_begin(struct pt_regs *ctx);
int ebpfmon_unlock(struct pt_regs *ctx);
int ebpfmon_pass_next(struct pt_regs *ctx);
int ebpfmon_list_end(struct pt_regs *ctx);
int ebpfmon_locked(struct pt_regs *ctx);
int ebpfmon_request(struct pt_regs *ctx);
int ebpfmon_request_many(struct pt_regs *ctx);
int ebpfmon_unlock_many(struct pt_regs *ctx);
int ebpfmon_completed(struct pt_regs *ctx);
int ebpfmon_process(struct pt_regs *ctx);

/* As ebpfMonKernelGetProgram (probe/kernelLoad.c). */
static int (*const programOf[iocProgramCount])(struct pt_regs *) = {
    [iocPut] = ebpfmon_put, [iocPutReturn] = ebpfmon_put_return, [iocPutField] = ebpfmon_putfield,
    [iocLock] = ebpfmon_lock, [iocPassBegin] = ebpfmon_pass_begin,
    [iocUnlock] = ebpfmon_unlock, [iocPassCount] = ebpfmon_unlock, [iocPassNext] = ebpfmon_pass_next,
    [iocListEnd] = ebpfmon_list_end, [iocLocked] = ebpfmon_locked, [iocAsk] = ebpfmon_request,
    [iocAskMany] = ebpfmon_request_many, [iocUnlockMany] = ebpfmon_unlock_many, [iocCompleted] = ebpfmon_completed,
    [iocProcess] = ebpfmon_process,
};

static const char *const nameOf[iocProgramCount] = {
    "put", "put_return", "putfield", "lock", "pass_begin", "unlock", "unlock (scanList)", "pass_next",
    "list_end", "locked", "request", "request_many", "unlock_many", "completed", "process",
};

static uint64_t findSp(void)
{
    return (uint64_t)(uintptr_t)&iocOne->stack[exploreSelf()][STACK_ENTRY - STACK_FRAME * depthOf[exploreSelf()]];
}

static void enter(void)
{
    depthOf[exploreSelf()]++;
}

static void leave(void)
{
    depthOf[exploreSelf()]--;
}

/* The present thread comes to a place at which this program may be attached. */
static void trap(iocProgram program, iocCaller caller, const void *first, uint64_t second, const void *third,
                 uint64_t fourth)
{
    struct pt_regs ctx = { 0 };
    int self = exploreSelf();

    if (!iocOne->attached[program][caller])
        return;
    PT_REGS_PARM1(&ctx) = (uintptr_t)first;
    PT_REGS_PARM2(&ctx) = second;
    PT_REGS_PARM3(&ctx) = (uintptr_t)third;
    PT_REGS_PARM4(&ctx) = fourth;
    PT_REGS_RC(&ctx) = 0;
    PT_REGS_SP(&ctx) = findSp();
    iocTraps++;
    exploreNote("ebpfmon_%s", nameOf[program]);
    iocOne->running[self]++;
    programOf[program](&ctx);
    iocOne->running[self]++;
    exploreNote("ebpfmon_%s is done", nameOf[program]);
}

static void trapAt(iocProgram program, iocCaller caller, const void *first)
{
    trap(program, caller, first, 0, NULL, 0);
}

/* --- locks ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t *owner;
    uint64_t self;
} Waiting;

#define NO_POINTS __attribute__((no_sanitize("thread"), noinline))

static NO_POINTS int isFree(void *arg)
{
    const Waiting *w = arg;

    return !*w->owner || *w->owner == w->self;
}

/* A mutex. That a thread requests it is a point, if others do, too. */
static NO_POINTS void takeMutex(uint64_t *owner)
{
    Waiting w = { owner, (uint64_t)exploreSelf() + 1 };

    if (exploreSelf() < 0)
        return; /* in setUp */
    exploreAccess(owner, sizeof(*owner), 1);
    exploreWait(isFree, &w);
    *owner = w.self;
}

static NO_POINTS void giveMutex(uint64_t *owner)
{
    *owner = 0;
}

static NO_POINTS void takeSet(iocLockSet *set)
{
    takeMutex(&set->owner);
    set->depth++;
}

static NO_POINTS void giveSet(iocLockSet *set)
{
    if (!--set->depth)
        set->owner = 0;
}

/* dbLock.c: the set may be another one when its mutex is there. */
static void lockSet(iocLockRecord *lr)
{
    for (;;) {
        iocLockSet *set = lr->set;

        takeSet(set);
        if (lr->set == set)
            return;
        giveSet(set);
    }
}

static void dbScanLock(iocRecord *r, iocCaller caller)
{
    if (caller == iocOther || caller == iocByCallback) {
        trapAt(iocLock, caller, r);
        trapAt(iocAsk, caller, r);
    }
    lockSet(r->lset);
    if (caller == iocOther || caller == iocByCallback) /* dbPutField(): the entry of dbPut() stands for it */
        trapAt(iocLocked, caller, NULL);
    exploreNote("has the lock of %s", r->name);
}

static void dbScanUnlock(iocRecord *r, iocCaller caller)
{
    if (caller == iocByScanList) {
        trapAt(iocPassCount, caller, r);
        trapAt(iocPassNext, caller, r);
    } else {
        trapAt(iocUnlock, caller, r);
    }
    exploreNote("gives back the lock of %s", r->name);
    giveSet(r->lset->set);
}

/* dbLock.c: in the order of the addresses of the lock sets; if one has changed meanwhile, all are given back. */
static void dbScanLockMany(iocLocker *locker, iocRecord **r, unsigned count)
{
    memset(locker, 0, sizeof(*locker));
    locker->maxrefs = count;
    for (unsigned i = 0; i < count; i++)
        locker->refs[i].plr = r[i]->lset;
    trapAt(iocAskMany, iocOther, locker);
retry:
    for (unsigned i = 0; i < count; i++)
        locker->refs[i].set = (uintptr_t)locker->refs[i].plr->set;
    for (unsigned i = 1; i < count; i++)
        for (unsigned k = i; k && locker->refs[k].set < locker->refs[k - 1].set; k--) {
            __typeof__(locker->refs[0]) other = locker->refs[k];

            locker->refs[k] = locker->refs[k - 1];
            locker->refs[k - 1] = other;
        }
    for (unsigned i = 0; i < count; i++) {
        iocLockSet *set = (iocLockSet *)(uintptr_t)locker->refs[i].set;

        if (!i || locker->refs[i].set != locker->refs[i - 1].set)
            takeSet(set);
        if (locker->refs[i].plr->set == set)
            continue;
        for (unsigned k = 0; k <= i; k++)
            if (!k || locker->refs[k].set != locker->refs[k - 1].set)
                giveSet((iocLockSet *)(uintptr_t)locker->refs[k].set);
        goto retry;
    }
    trapAt(iocLocked, iocOther, NULL);
}

static void dbScanUnlockMany(iocLocker *locker)
{
    trapAt(iocUnlockMany, iocOther, locker);
    for (unsigned i = 0; i < locker->maxrefs; i++)
        if (!i || locker->refs[i].set != locker->refs[i - 1].set)
            giveSet((iocLockSet *)(uintptr_t)locker->refs[i].set);
}

/* --- records ---------------------------------------------------------------------------------------------------- */

static void dbProcess(iocRecord *r);

/* An epicsTimeStamp: the seconds are in the low half. */
static uint64_t readTime(void)
{
    uint64_t now = exploreNow();

    return now / 1000000000 | now % 1000000000 << 32;
}

static void fillAddr(iocAddr *a, iocRecord *r, void *field, int16_t type, int16_t size)
{
    *a = (iocAddr){ .precord = r, .pfield = field, .elements = 1, .fieldType = type, .fieldSize = size };
}

/* dbScan.c */
static void deleteFromList(iocRecord *r)
{
    iocElement *e = r->spvt;
    iocList *list = e ? e->list : NULL;

    if (!list)
        return;
    takeMutex(&list->owner);
    e->list = NULL;
    if (e->next)
        e->next->previous = e->previous;
    if (e->previous)
        e->previous->next = e->next;
    else
        list->first = e->next;
    list->isModified = 1;
    giveMutex(&list->owner);
    exploreNote("%s is in no list", r->name);
}

static void addToList(iocRecord *r)
{
    iocElement *e = r->spvt, *last;
    iocList *list = &iocOne->list[r->scan - FIRST_PERIODIC];

    if (!r->scan)
        return;
    takeMutex(&list->owner);
    e->list = list;
    for (last = list->first; last && last->next;)
        last = last->next;
    e->previous = last;
    e->next = NULL;
    if (last)
        last->next = e;
    else
        list->first = e;
    list->isModified = 1;
    giveMutex(&list->owner);
    exploreNote("%s is in list %d", r->name, r->scan - FIRST_PERIODIC);
}

/* dbAccess.c. "a" is in the memory of the IOC. "scan": a value for SCAN. */
static void dbPut(iocAddr *a, int16_t scan)
{
    enter();
    trap(iocPut, iocOther, a, DBR_CHAR, iocOne->value, 1);
    if (a->special == EBPFMON_SPC_SCAN) {
        deleteFromList(a->precord);
        a->precord->scan = scan;
        addToList(a->precord);
    } else if (a->pfield == &a->precord->val) {
        a->precord->val += 1;
    }
    trapAt(iocPutReturn, iocOther, NULL);
    leave();
}

static void dbScanPassive(iocRecord *to)
{
    if (!to->scan)
        dbProcess(to);
}

/* recGblFwdLink(): the record is complete. */
static void recGblFwdLink(iocRecord *r)
{
    trapAt(iocCompleted, iocOther, r);
    iocProcessed[r - iocOne->record]++;
    exploreNote("%s has processed", r->name);
    if (r->flnk)
        dbScanPassive(r->flnk);
}

/* dbLink.c: dbDbPutValue() */
static void putLink(iocRecord *to)
{
    iocAddr *a = (iocAddr *)&iocOne->stack[exploreSelf()][8 * (depthOf[exploreSelf()] & 1)];

    fillAddr(a, to, &to->val, 10, 8);
    dbPut(a, 0);
    dbScanPassive(to);
}

/* process() of its record type. An asynchronous one requests a callback, which calls this again. */
static void process(iocRecord *r)
{
    if (!r->pact && r->kind != iocSync) {
        if (r->kind == iocAsyncStampsFirst)
            r->time = readTime();
        r->pact = 1;
        __atomic_fetch_or(&iocOne->callbacks, 1u << (r - iocOne->record), __ATOMIC_SEQ_CST);
        return;
    }
    r->pact = 1;
    r->time = readTime();
    if (r->out)
        putLink(r->out);
    recGblFwdLink(r);
    r->pact = 0;
}

static void dbProcess(iocRecord *r)
{
    enter();
    trapAt(iocProcess, iocOther, r);
    if (!r->pact && !r->isDisabled)
        process(r);
    leave();
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

/* Where a pass is in its list. */
typedef struct {
    iocElement *previous, *at, *next;
} Place;

/* dbScan.c, scanList(): the next record, also if records have left the list meanwhile. The list's mutex is held. */
static void goOn(iocList *list, Place *p)
{
    if (!list->isModified || p->at->list == list) {
        p->previous = p->at;
        p->at = p->at->next;
    } else if (p->previous && p->previous->list == list) {
        p->at = p->previous->next;
        if (p->at)
            p->previous = p->at->previous;
    } else if (p->next && p->next->list == list) {
        p->at = p->next;
        p->previous = p->at->previous;
    } else {
        p->at = NULL; /* too many changes */
    }
    p->next = p->at ? p->at->next : NULL;
    list->isModified = 0;
}

void iocScanList(unsigned number)
{
    iocList *list = &iocOne->list[number];
    Place p = { 0 };

    enter();
    trapAt(iocPassBegin, iocByScanList, list);
    takeMutex(&list->owner);
    list->isModified = 0;
    p.at = list->first;
    p.next = p.at ? p.at->next : NULL;
    giveMutex(&list->owner);
    while (p.at) {
        iocRecord *r = p.at->precord;

        /* a register that dbProcess() has saved (bpf/pass/passRoot.bpf.c) */
        iocOne->stack[exploreSelf()][STACK_ENTRY - 2 * STACK_FRAME + 1] = (uintptr_t)r;
        enter();
        dbScanLock(r, iocByScanList);
        dbProcess(r);
        dbScanUnlock(r, iocByScanList);
        leave();
        takeMutex(&list->owner);
        goOn(list, &p);
        if (!p.at) /* epicsMutexUnlock() is called for the last time */
            trapAt(iocListEnd, iocByScanList, list->mutex);
        giveMutex(&list->owner);
    }
    leave();
}

static void dbPutField(iocAddr *a, int processes, int16_t scan)
{
    iocRecord *r = a->precord;

    enter();
    trap(iocPutField, iocOther, a, DBR_CHAR, iocOne->value, 1);
    if (!r->disp) {
        enter();
        dbScanLock(r, iocByPutField);
        dbPut(a, scan);
        if (processes)
            dbProcess(r);
        dbScanUnlock(r, iocByPutField);
        leave();
    }
    leave();
}

void iocPutToField(iocRecord *r, int processes)
{
    iocAddr *a = (iocAddr *)iocOne->stack[exploreSelf()];

    fillAddr(a, r, processes ? (void *)&r->proc : (void *)&r->val, processes ? 4 : 10, processes ? 1 : 8);
    dbPutField(a, processes, 0);
}

void iocPutScan(iocRecord *r, int list)
{
    iocAddr *a = (iocAddr *)iocOne->stack[exploreSelf()];

    fillAddr(a, r, &r->scan, EBPFMON_DBF_MENU, 2);
    a->special = EBPFMON_SPC_SCAN;
    dbPutField(a, 0, (int16_t)(list < 0 ? 0 : FIRST_PERIODIC + list));
}

void iocProcessIt(iocRecord *r)
{
    enter();
    dbScanLock(r, iocOther);
    dbProcess(r);
    dbScanUnlock(r, iocOther);
    leave();
}

void iocProcessUnseen(iocRecord *r)
{
    enter();
    lockSet(r->lset);
    dbProcess(r);
    dbScanUnlock(r, iocOther);
    leave();
}

static int isRequested(void *arg)
{
    return (iocOne->callbacks & *(uint32_t *)arg) != 0 || !iocOne->requesters;
}

/* callback.c: ProcessCallback() */
void iocRunCallbacks(iocRecord *r)
{
    uint32_t bit = 1u << (r - iocOne->record);

    for (;;) {
        exploreWait(isRequested, &bit);
        if (!(iocOne->callbacks & bit))
            return;
        __atomic_fetch_and(&iocOne->callbacks, ~bit, __ATOMIC_SEQ_CST);
        enter();
        dbScanLock(r, iocByCallback);
        process(r);
        dbScanUnlock(r, iocByCallback);
        leave();
    }
}

NO_POINTS void iocEndRequests(void)
{
    iocOne->requesters--;
}

/* The records of one set get another one. */
static void moveSet(iocLockSet *from, iocLockSet *to)
{
    for (unsigned i = 0; i < iocOne->count; i++)
        if (iocOne->record[i].lset->set == from)
            iocOne->record[i].lset->set = to;
}

/* dbAccess.c: dbPutFieldLink(). Lock sets are merged, and not split, which would change nothing here. */
void iocPutFlnk(iocRecord *r, iocRecord *to)
{
    iocAddr *a = (iocAddr *)iocOne->stack[exploreSelf()];
    iocLocker *locker = (iocLocker *)&iocOne->stack[exploreSelf()][8];
    iocRecord *many[2] = { r, to };

    fillAddr(a, r, &r->flnk, EBPFMON_DBF_FWDLINK, 0);
    enter();
    iocOne->linkPutAt = exploreNow();
    trap(iocPutField, iocOther, a, DBR_CHAR, iocOne->value, 1);
    enter();
    dbScanLockMany(locker, many, to ? 2 : 1);
    r->flnk = to;
    exploreNote("FLNK of %s is %s", r->name, to ? to->name : "empty");
    if (to && to->lset->set != r->lset->set) {
        iocLockSet *given = to->lset->set;

        moveSet(given, r->lset->set);
        giveSet(given); /* dbLock.c, dbLockSetMerge(): the locker has one set less */
        for (unsigned i = 0; i < locker->maxrefs; i++)
            locker->refs[i].set = (uintptr_t)r->lset->set;
    }
    dbScanUnlockMany(locker);
    leave();
    leave();
}

void iocPutGroup(iocRecord **r, unsigned count)
{
    iocLocker *locker = (iocLocker *)&iocOne->stack[exploreSelf()][8];
    iocAddr *a = (iocAddr *)iocOne->stack[exploreSelf()];

    enter();
    dbScanLockMany(locker, r, count);
    for (unsigned i = 0; i < count; i++) {
        fillAddr(a, r[i], &r[i]->val, 10, 8);
        dbPut(a, 0);
        dbProcess(r[i]);
    }
    dbScanUnlockMany(locker);
    leave();
}

void iocReadMany(iocRecord **r, unsigned count)
{
    iocLocker *locker = (iocLocker *)&iocOne->stack[exploreSelf()][8];

    enter();
    dbScanLockMany(locker, r, count);
    dbScanUnlockMany(locker);
    leave();
}

/* --- set up ----------------------------------------------------------------------------------------------------- */

void iocMake(void)
{
    iocOne = exploreAlloc(sizeof(*iocOne));
    exploreName(iocOne->record, sizeof(iocOne->record), sizeof(iocOne->record[0]), "record[%u]");
    exploreName(iocOne->attached, sizeof(iocOne->attached), sizeof(iocOne->attached[0]), "attached[%u]");
    exploreName(iocOne, sizeof(*iocOne), sizeof(*iocOne), "ioc");
    exploreIgnore(iocOne->running, sizeof(iocOne->running));
}

iocRecord *iocAddRecord(const char *name, int kind)
{
    iocRecord *r = &iocOne->record[iocOne->count++];
    iocLockSet *set = exploreAlloc(sizeof(*set));

    snprintf(r->name, sizeof(r->name), "%s", name);
    r->kind = (uint8_t)kind;
    r->time = readTime();
    r->lset = exploreAlloc(sizeof(*r->lset));
    r->lset->precord = r;
    r->lset->set = set;
    exploreName(set, sizeof(*set), sizeof(*set), "lockSet");
    exploreName(r->lset, sizeof(*r->lset), sizeof(*r->lset), "lockRecord");
    return r;
}

void iocJoin(iocRecord *a, iocRecord *b)
{
    moveSet(b->lset->set, a->lset->set);
}

void iocAddToList(unsigned number, iocRecord *r)
{
    iocList *list = &iocOne->list[number];

    if (!list->mutex)
        list->mutex = exploreAlloc(sizeof(*list->mutex));
    if (iocOne->listCount <= number)
        iocOne->listCount = number + 1;
    if (!r->spvt) {
        r->spvt = exploreAlloc(sizeof(*r->spvt));
        r->spvt->precord = r;
    }
    r->scan = (int16_t)(FIRST_PERIODIC + number);
    addToList(r);
}

void iocBegin(void)
{
    memset(iocProcessed, 0, sizeof(iocProcessed));
    memset(depthOf, 0, sizeof(depthOf));
    iocTraps = 0;
}
