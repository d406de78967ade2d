/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The lock sets that a thread holds. Chains that dbScanLock() begins (chain.bpf.c) and chains of scan lists
 * (passChain.bpf.c) both use this. */
#ifndef EBPFMON_HELDLOCKS_BPF_H
#define EBPFMON_HELDLOCKS_BPF_H

#include "ebpfMonBase.h"
#include "thread/handOver.bpf.h"
#include "thread/scanThread.bpf.h"

static __always_inline __u64 readLockSet(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    return readPtr(readPtr(precord + conf->lset) + EBPFMON_LockRecord_plockSet);
}

/* The lock set. For a chain of a scan list it is read only now: two reads of user memory are a fifth of what the begin
 * of such a chain costs. */
static __always_inline __u64 getLockSet(const struct caller *c, struct ebpfMonHeld *h)
{
    if (!h->lockSet && h->root)
        h->lockSet = readLockSet(c->conf, h->root);
    return h->lockSet;
}

/* ns. If the lock was there so much later than the request, the thread waited for it; less may be the time of the traps
 * between. Passes with chains that are not timed may have held the lock, and they note no release; nor do shorter
 * chains of passes. */
#define LOCK_WAIT_LEAST 10000

static __always_inline void clearOffCpu(struct thread *th)
{
    th->off.left = th->off.blocked = th->off.cpuWait = th->off.longest = 0;
    th->off.longestSyscall = EBPFMON_NO_SYSCALL;
}

/* Notes one more lock set of this thread, as number n. "set", "sp": see struct ebpfMonHeld. */
static __always_inline void noteLock(const struct caller *c, struct thread *th, __u32 n, __u64 set, __u64 precord,
                                     __u64 now, __u64 sp)
{
    struct ebpfMonHeld *h = getHeld(th, n);

    h->lockSet = set;
    h->root = precord;
    h->begin = now;
    h->depth = 1;
    h->handOvers = 0;
    h->sp = sp;
    h->got = 0;
    h->turn = c->conf->turn;
    h->putSp = 0;
    h->isLast = 0;
    h->hasInner = 0;
    th->seen.heldCount = n + 1;
    if (n)
        return;
    takeLate(c, th);
    clearOffCpu(th);
    th->off.queueWait = th->queueWait; /* only for the first chain after the queue */
    th->queueWait = 0;
    if (sp) /* a chain of a scan list; beginPass() has begun the pass (passChain.bpf.c) */
        return;
    if (isScanThread(&th->seen)) {
        if (isScanBegin(&th->seen.scan, precord, now))
            beginScanPass(&th->seen.scan, precord, now, 1);
    } else if (th->seen.isOnce) {
        th->off.queueWait = takeFromQueue(c, th, precord, EBPFMON_QUEUE_ONCE, now);
    }
}

/* Nonzero: the thread has left the function in which the lock set was noted. */
static __always_inline int isLeft(const struct ebpfMonHeld *h, __u64 sp)
{
    if (h->sp)
        return h->sp < sp;
    return h->putSp && (__s32)((__u32)sp - h->putSp) > 0;
}

/* Forgets passes that have ended. A pass may end before the last record of its list: "Too many changes" (dbScan.c).
 * Then the thread does not hold the lock set that we expected next. Also forgets the lock of a put that was refused,
 * because DISP was set at that moment (lock.bpf.c). "sp": the stack pointer now. */
static __always_inline void dropEndedPasses(struct thread *th, __u64 sp)
{
#pragma unroll
    for (int i = 0; i < EBPFMON_NESTED; i++) {
        struct ebpfMonHeld *h = getLastHeld(th);

        if (!h || !isLeft(h, sp))
            return;
        th->seen.heldCount--;
    }
}

/* Nonzero: a chain of a scan list that began untimed, so its begin is not known. */
static __always_inline int isUntimed(const struct caller *c, const struct ebpfMonHeld *h)
{
    return h && h->sp && h->turn != c->conf->turn;
}

#endif
