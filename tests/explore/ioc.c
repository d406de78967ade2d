/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "ebpfMonTable.h"
#include "ebpfMonBase.h"
#include "explore.h"
#include "iocOwn.h"

_Static_assert(offsetof(iocLockRecord, set) == EBPFMON_LockRecord_plockSet &&
               offsetof(iocLockRecord, precord) == EBPFMON_LockRecord_precord &&
               offsetof(iocElement, precord) == EBPFMON_ScanElement_precord &&
               offsetof(iocElement, list) == EBPFMON_ScanElement_pscan_list &&
               offsetof(iocList, first) == EBPFMON_ScanList_list &&
               offsetof(iocAddr, special) == EBPFMON_DbAddr_special &&
               offsetof(iocLocker, maxrefs) == EBPFMON_LOCKER_MAXREFS &&
               offsetof(iocLocker, refs) == EBPFMON_LOCKER_REFS &&
               offsetof(iocRecord, time) - offsetof(iocRecord, pact) < EBPFMON_TIME_WINDOW &&
               offsetof(iocRecord, time) >= EBPFMON_TIME_WINDOW, "as in Base");

#define FIRST_PERIODIC 3 /* menuScan.dbd */
#define DBR_CHAR       1 /* one byte: the values do not matter */

ioc *iocOne;
uint64_t iocProcessed[IOC_RECORDS_MAX];

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
    iocTakeMutex(&list->owner);
    e->list = NULL;
    if (e->next)
        e->next->previous = e->previous;
    if (e->previous)
        e->previous->next = e->next;
    else
        list->first = e->next;
    list->isModified = 1;
    iocGiveMutex(&list->owner);
    exploreNote("%s is in no list", r->name);
}

static void addToList(iocRecord *r)
{
    iocElement *e = r->spvt, *last;
    iocList *list = &iocOne->list[r->scan - FIRST_PERIODIC];

    if (!r->scan)
        return;
    iocTakeMutex(&list->owner);
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
    iocGiveMutex(&list->owner);
    exploreNote("%s is in list %d", r->name, r->scan - FIRST_PERIODIC);
}

/* dbAccess.c. "a" is in the memory of the IOC. "scan": a value for SCAN. */
static void dbPut(iocAddr *a, int16_t scan)
{
    iocEnter();
    iocTrap(iocPut, iocOther, a, DBR_CHAR, iocOne->value, 1);
    if (a->special == EBPFMON_SPC_SCAN) {
        deleteFromList(a->precord);
        a->precord->scan = scan;
        addToList(a->precord);
    } else if (a->pfield == &a->precord->val) {
        a->precord->val += 1;
    }
    iocTrapAt(iocPutReturn, iocOther, NULL);
    iocLeave();
}

static void dbScanPassive(iocRecord *to)
{
    if (!to->scan)
        dbProcess(to);
}

/* recGblFwdLink(): the record is complete. */
static void recGblFwdLink(iocRecord *r)
{
    iocTrapAt(iocCompleted, iocOther, r);
    iocProcessed[r - iocOne->record]++;
    exploreNote("%s has processed", r->name);
    if (r->flnk)
        dbScanPassive(r->flnk);
}

/* dbLink.c: dbDbPutValue() */
static void putLink(iocRecord *to)
{
    iocAddr *a = (iocAddr *)&iocOne->stack[exploreSelf()][8 * (iocDepth() & 1)];

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
    iocEnter();
    iocTrapAt(iocProcess, iocOther, r);
    if (!r->pact && !r->isDisabled)
        process(r);
    iocLeave();
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

    iocEnter();
    iocTrapAt(iocPassBegin, iocByScanList, list);
    iocTakeMutex(&list->owner);
    list->isModified = 0;
    p.at = list->first;
    p.next = p.at ? p.at->next : NULL;
    iocGiveMutex(&list->owner);
    while (p.at) {
        iocRecord *r = p.at->precord;

        /* a register that dbProcess() has saved (bpf/pass/passRoot.bpf.c) */
        iocOne->stack[exploreSelf()][STACK_ENTRY - 2 * STACK_FRAME + 1] = (uintptr_t)r;
        iocEnter();
        dbScanLock(r, iocByScanList);
        dbProcess(r);
        dbScanUnlock(r, iocByScanList);
        iocLeave();
        iocTakeMutex(&list->owner);
        goOn(list, &p);
        if (!p.at) /* epicsMutexUnlock() is called for the last time */
            iocTrapAt(iocListEnd, iocByScanList, list->mutex);
        iocGiveMutex(&list->owner);
    }
    iocLeave();
}

static void dbPutField(iocAddr *a, int processes, int16_t scan)
{
    iocRecord *r = a->precord;

    iocEnter();
    iocTrap(iocPutField, iocOther, a, DBR_CHAR, iocOne->value, 1);
    if (!r->disp) {
        iocEnter();
        dbScanLock(r, iocByPutField);
        dbPut(a, scan);
        if (processes)
            dbProcess(r);
        dbScanUnlock(r, iocByPutField);
        iocLeave();
    }
    iocLeave();
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
    iocEnter();
    dbScanLock(r, iocOther);
    dbProcess(r);
    dbScanUnlock(r, iocOther);
    iocLeave();
}

void iocProcessMany(iocRecord **r, unsigned count)
{
    iocEnter();
    dbScanLock(r[0], iocOther);
    for (unsigned i = 0; i < count; i++) {
        iocTrapAt(iocProcessCall, iocOther, r[i]);
        dbProcess(r[i]);
    }
    dbScanUnlock(r[0], iocOther);
    iocLeave();
}

void iocProcessUnseen(iocRecord *r)
{
    iocEnter();
    iocTakeSet(r->lset);
    dbProcess(r);
    dbScanUnlock(r, iocOther);
    iocLeave();
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
        iocEnter();
        dbScanLock(r, iocByCallback);
        process(r);
        dbScanUnlock(r, iocByCallback);
        iocLeave();
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
    iocEnter();
    iocTrap(iocPutField, iocOther, a, DBR_CHAR, iocOne->value, 1);
    iocEnter();
    dbScanLockMany(locker, many, to ? 2 : 1);
    r->flnk = to;
    exploreNote("FLNK of %s is %s", r->name, to ? to->name : "empty");
    if (to && to->lset->set != r->lset->set) {
        iocLockSet *given = to->lset->set;

        moveSet(given, r->lset->set);
        iocGiveSet(given); /* dbLock.c, dbLockSetMerge(): the locker has one set less */
        for (unsigned i = 0; i < locker->maxrefs; i++)
            locker->refs[i].set = (uintptr_t)r->lset->set;
    }
    dbScanUnlockMany(locker);
    iocLeave();
    iocLeave();
}

void iocPutGroup(iocRecord **r, unsigned count)
{
    iocLocker *locker = (iocLocker *)&iocOne->stack[exploreSelf()][8];
    iocAddr *a = (iocAddr *)iocOne->stack[exploreSelf()];

    iocEnter();
    dbScanLockMany(locker, r, count);
    for (unsigned i = 0; i < count; i++) {
        fillAddr(a, r[i], &r[i]->val, 10, 8);
        dbPut(a, 0);
        dbProcess(r[i]);
    }
    dbScanUnlockMany(locker);
    iocLeave();
}

void iocReadMany(iocRecord **r, unsigned count)
{
    iocLocker *locker = (iocLocker *)&iocOne->stack[exploreSelf()][8];

    iocEnter();
    dbScanLockMany(locker, r, count);
    dbScanUnlockMany(locker);
    iocLeave();
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
    iocForgetCalls();
}
