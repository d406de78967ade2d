/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes, and locks (dbLock.c). */
#include <string.h>

#include <bpf/bpf_helpers.h> /* first, because bpf_tracing.h of libbpf 1.5 includes its own */
#include <bpf/bpf_tracing.h>
#include <linux/ptrace.h>

#include "explore.h"
#include "iocOwn.h"

/* What follows is no memory that threads share. */
#pragma clang section bss = ""

uint64_t iocTraps;

/* By thread: how deep it is on its stack. */
static unsigned depthOf[EXPLORE_THREADS_MAX];

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
int ebpfmon_process_call(struct pt_regs *ctx);
int ebpfmon_process(struct pt_regs *ctx);

/* As ebpfMonKernelGetProgram (probe/kernelLoad.c). */
static int (*const programOf[iocProgramCount])(struct pt_regs *) = {
    [iocPut] = ebpfmon_put, [iocPutReturn] = ebpfmon_put_return, [iocPutField] = ebpfmon_putfield,
    [iocLock] = ebpfmon_lock, [iocPassBegin] = ebpfmon_pass_begin,
    [iocUnlock] = ebpfmon_unlock, [iocPassCount] = ebpfmon_unlock, [iocPassNext] = ebpfmon_pass_next,
    [iocListEnd] = ebpfmon_list_end, [iocLocked] = ebpfmon_locked, [iocAsk] = ebpfmon_request,
    [iocAskMany] = ebpfmon_request_many, [iocProcessCall] = ebpfmon_process_call,
    [iocUnlockMany] = ebpfmon_unlock_many, [iocCompleted] = ebpfmon_completed, [iocProcess] = ebpfmon_process,
};

static const char *const nameOf[iocProgramCount] = {
    "put", "put_return", "putfield", "lock", "pass_begin", "unlock", "unlock (scanList)", "pass_next",
    "list_end", "locked", "request", "request_many", "process_call", "unlock_many", "completed", "process",
};

static uint64_t findSp(void)
{
    return (uint64_t)(uintptr_t)&iocOne->stack[exploreSelf()][STACK_ENTRY - STACK_FRAME * depthOf[exploreSelf()]];
}

void iocEnter(void)
{
    depthOf[exploreSelf()]++;
}

void iocLeave(void)
{
    depthOf[exploreSelf()]--;
}

unsigned iocDepth(void)
{
    return depthOf[exploreSelf()];
}

void iocForgetCalls(void)
{
    memset(depthOf, 0, sizeof(depthOf));
    iocTraps = 0;
}

/* The present thread comes to a place at which this program may be attached. */
void iocTrap(iocProgram program, iocCaller caller, const void *first, uint64_t second, const void *third,
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

void iocTrapAt(iocProgram program, iocCaller caller, const void *first)
{
    iocTrap(program, caller, first, 0, NULL, 0);
}

/* --- locks ------------------------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t *owner;
    uint64_t self;
} Waiting;

static NO_POINTS int isFree(void *arg)
{
    const Waiting *w = arg;

    return !*w->owner || *w->owner == w->self;
}

/* A mutex. That a thread requests it is a point, if others do, too. */
NO_POINTS void iocTakeMutex(uint64_t *owner)
{
    Waiting w = { owner, (uint64_t)exploreSelf() + 1 };

    if (exploreSelf() < 0)
        return; /* in setUp */
    exploreAccess(owner, sizeof(*owner), 1);
    exploreWait(isFree, &w);
    *owner = w.self;
}

NO_POINTS void iocGiveMutex(uint64_t *owner)
{
    *owner = 0;
}

static NO_POINTS void takeSet(iocLockSet *set)
{
    iocTakeMutex(&set->owner);
    set->depth++;
}

NO_POINTS void iocGiveSet(iocLockSet *set)
{
    if (!--set->depth)
        set->owner = 0;
}

/* dbLock.c: the set may be another one when its mutex is there. */
void iocTakeSet(iocLockRecord *lr)
{
    for (;;) {
        iocLockSet *set = lr->set;

        takeSet(set);
        if (lr->set == set)
            return;
        iocGiveSet(set);
    }
}

void dbScanLock(iocRecord *r, iocCaller caller)
{
    if (caller == iocOther || caller == iocByCallback) {
        iocTrapAt(iocLock, caller, r);
        iocTrapAt(iocAsk, caller, r);
    }
    iocTakeSet(r->lset);
    if (caller == iocOther || caller == iocByCallback) /* dbPutField(): the entry of dbPut() stands for it */
        iocTrapAt(iocLocked, caller, NULL);
    exploreNote("has the lock of %s", r->name);
}

void dbScanUnlock(iocRecord *r, iocCaller caller)
{
    if (caller == iocByScanList) {
        iocTrapAt(iocPassCount, caller, r);
        iocTrapAt(iocPassNext, caller, r);
    } else {
        iocTrapAt(iocUnlock, caller, r);
    }
    exploreNote("gives back the lock of %s", r->name);
    iocGiveSet(r->lset->set);
}

/* dbLock.c: in the order of the addresses of the lock sets; if one has changed meanwhile, all are given back. */
void dbScanLockMany(iocLocker *locker, iocRecord **r, unsigned count)
{
    memset(locker, 0, sizeof(*locker));
    locker->maxrefs = count;
    for (unsigned i = 0; i < count; i++)
        locker->refs[i].plr = r[i]->lset;
    iocTrapAt(iocAskMany, iocOther, locker);
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
                iocGiveSet((iocLockSet *)(uintptr_t)locker->refs[k].set);
        goto retry;
    }
    iocTrapAt(iocLocked, iocOther, NULL);
}

void dbScanUnlockMany(iocLocker *locker)
{
    iocTrapAt(iocUnlockMany, iocOther, locker);
    for (unsigned i = 0; i < locker->maxrefs; i++)
        if (!i || locker->refs[i].set != locker->refs[i - 1].set)
            iocGiveSet((iocLockSet *)(uintptr_t)locker->refs[i].set);
}
