/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What other programs call about threads that enter or leave a group of records. */
#ifndef EBPFMON_GROUP_BPF_H
#define EBPFMON_GROUP_BPF_H

#include "pass/sweep.bpf.h"

/* Leaves groups before the thread releases the lock, and after its own processings were counted. */
int ebpfmon_leave(__u64 lock, __u64 now, __u32 isMany);

/* The thread is in dbPut() of this record. If the thread has requested the lock of this record last, it has the lock
 * now, and enters the group of the record. */
int ebpfmon_enter_put(__u64 precord, __u64 now);

/* This thread has entered the group of this record, which may be processing asynchronously, and nobody has noted who
 * began that. */
int ebpfmon_note_beginner(__u32 slot);

/* The thread requests the lock set of this record, or the lock sets of this dbLocker. */
static __always_inline void noteRequest(const struct caller *c, __u64 lock, __u32 isMany)
{
    struct groupThread *gt = getGroupThread(c->tid);

    if (!gt) {
        noteMissed(c->tgid);
        return;
    }
    gt->requested = lock;
    gt->requestedMany = isMany;
}

#endif
