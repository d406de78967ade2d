// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* The begin of a chain: its thread requests a lock set. chain.bpf.c has the end. */
#include "chain/lock.bpf.h"
#include "common/dbAddr.bpf.h"
#include "pass/group.bpf.h"
#include "pass/passRoot.bpf.h"
#include "thread/heldLocks.bpf.h"

/* "isPut": dbPutField() requests it, and "sp" is the stack pointer at its entry. */
static __always_inline void takeLock(const struct caller *c, __u64 sp, __u64 precord, __u64 now, int isPut)
{
    struct thread *th = getThread(c->tid);
    struct ebpfMonHeld *h;
    __u64 set;
    __u32 n;

    if (!th)
        return;
    if (c->conf->sweeps) /* the same as in ebpfmon_request */
        noteRequest(c, precord, 0);
    set = readLockSet(c->conf, precord);
    dropEndedPasses(th, sp + !!isPut); /* a dbPutField() within another one has a lower stack pointer */
    n = th->seen.heldCount;
    h = getLastHeld(th);
    if (h && getLockSet(c, h) == set) { /* this thread holds it already: the lock is recursive */
        h->depth++;
        return;
    }
    if (n >= EBPFMON_NESTED) {
        countLost(EBPFMON_LOST_NESTED);
        th->seen.heldCount = n < 1000 ? n + 1 : n;
        return;
    }
    noteLock(c, th, n, set, precord, now, 0);
    if (isPut)
        getHeld(th, n)->putSp = (__u32)sp;
}

static __always_inline void seeLock(__u64 precord, __u64 sp, __u64 now)
{
    struct caller c;

    if (enterProbe(&c, EBPFMON_HIT_ENTRY))
        takeLock(&c, sp, precord, now, 0);
}

/* dbScanLock(dbCommon *) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_lock, __u64 precord)
{
    RUN_TIMED(seeLock(precord, PT_REGS_SP(ctx), now));
}

/* dbPutField(DBADDR *) requests the lock of this record, after it has seen that it will not refuse the put
 * (dbAccess.c). ebpfmon_putfield has a probe at its entry, and calls this, so that the request costs no trap of its
 * own. The call of dbScanLock() would. If DISP changes between that look and the one of dbPutField(), a lock is noted
 * that is not taken; dropEndedPasses() forgets it. */
__attribute__((noinline)) int ebpfmon_request_put_lock(__u64 precord, __u64 sp, __u64 now)
{
    struct caller c;

    if (!findCaller(&c))
        return 0;
    if (c.conf->level >= EBPFMON_CHAINS)
        takeLock(&c, sp, precord, now, 1);
    else if (c.conf->sweeps)
        noteRequest(&c, precord, 0);
    return 0;
}
