// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Counts each processing by a trap: for records that a snapshot cannot count, and to check the snapshots.
 */
#include "thread/heldLocks.bpf.h"

/* Finds the record that caused the trap. NULL: it is not watched. */
static __always_inline struct ebpfMonRecState *enterRecord(void *ctx, struct caller *c, __u64 precord)
{
    __u32 slot;

    if (isTakenAway(ctx) || !enterProbe(c, EBPFMON_HIT_ENTRY) || !findSlot(c->tgid, precord, &slot))
        return 0;
    return findState(slot);
}

/* Nonzero: no thread holds the lock set of this record. Its mutex begins as pthread_mutex_t does (glibc,
 * struct_mutex.h). If another thread holds it at this moment, this is not seen; but it is the next time. */
static __always_inline int isUnlocked(const struct ebpfMonTargetConf *conf, __u64 precord)
{
    struct { __u32 lock, count; __s32 owner; } mutex = { .owner = 1 };
    __u64 at = readPtr(readLockSet(conf, precord) + EBPFMON_LockSet_lock);

    if (!at || !(conf->mutexOsd | conf->mutexId))
        return 0;
    at = conf->mutexOsd ? at + conf->mutexOsd : readPtr(at + conf->mutexId);
    return at && !bpf_probe_read_user(&mutex, sizeof(mutex), (void *)at) && !mutex.lock && !mutex.owner;
}

/* recGblFwdLink(dbCommon *): a record has completed, synchronously or not. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_completed, __u64 precord)
{
    struct ebpfMonRecState *st;
    struct caller c;

    KEEP_THREAD_STACK(ctx);
    st = enterRecord(ctx, &c, precord);
    if (!st)
        return 0;
    if ((st->watch & EBPFMON_WATCH_LOCK) && !st->unlocked && isUnlocked(c.conf, precord))
        st->unlocked = 1;
    st->trapped++;
    return 0;
}

/* dbProcess(dbCommon *): every attempt to process, also of a record that is busy or disabled. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_process, __u64 precord)
{
    struct ebpfMonRecState *st;
    struct caller c;

    KEEP_THREAD_STACK(ctx);
    st = enterRecord(ctx, &c, precord);
    if (st)
        st->entered++;
    return 0;
}
