/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Keys and values of tables that are the kernel part's own. Queries, which are programs of their own, look at them, too. */
#ifndef EBPFMON_THREAD_BPF_H
#define EBPFMON_THREAD_BPF_H

#include "ebpfMonTable.h"

/* One dbPut under way. */
struct inPut {
    __u64 id;
    __u64 sp;     /* the stack pointer at its entry */
    __u64 pfield;
    __u32 size;   /* bytes of a single value, 0: an array */
    __u32 locked; /* its result waits for the lock's release */
};

/* Where the time of a thread went since it requested its first lock; the scheduler's tracepoints write this. */
struct offCpu {
    __u64 left;    /* when it left the CPU; 0: it runs, or holds no lock */
    __u64 woken;   /* … and was woken */
    __u64 blocked, cpuWait, longest;
    __u64 queueWait; /* before: how long it was in the queue that it was taken out of */
    __s32 syscall; /* it left the CPU in this one */
    __s32 longestSyscall;
    __u32 slept;   /* it did not leave because another thread should run */
    __u32 pad;
};

#define NO_CALLBACKS 1

/* struct thread.popping */
#define POPPING_NOT   0
#define POPPING       1
#define POPPING_EMPTY 2

/* Who asked for a put that is made later, when its record is no longer busy. */
struct notified {
    struct ebpfMonWho who;
    __u32 seq;     /* of the message, as in struct ebpfMonPutEvent */
    __u32 seqFrom;
    __u16 seqKind;
    __u16 made;    /* the put was made: what the record does now, it does for this one */
};

/* Records that a chain left processing asynchronously. */
struct leftBusy {
    __u32 async[EBPFMON_ASYNC]; /* 1 + slot */
    __u32 more;                 /* there were more, and of the first ones the cause is not known */
};

/* A chain that is to be sent. The stack has no room for it. */
struct keptChain {
    __u64 causeBegin; /* of the chain that began what this one completes */
    __u64 wait, begin, now;
    __u32 causeTid; /* 0: nobody else began it */
    __u32 slot;    /* of its root */
    __u32 counted; /* records that it processed */
    __u32 flags;   /* EBPFMON_CHAIN_LATE or 0 */
    struct leftBusy left;
};

/* The present put of a thread: its outermost dbPut, which also counts for the records that it makes process. Valid
 * if isInPut says so. */
struct putInHand {
    __u64 precord;
    __u64 pfldDes;
    struct ebpfMonWho who;
    __u32 pad;
};

/* A group of records (ebpfMonRecState.group) that a thread may process because it holds this lock. */
struct inside {
    __u64 lock;   /* as struct thread.asked */
    __u32 group;
    __u32 sweeps; /* ebpfMonTargetConf.sweeps then */
};

#define INSIDE_MAX 64 /* power of two */
#define PASS_STACK 24 /* words below the entry of scanList in which dbProcess has saved the record */

/*
 * What is known of one thread of a watched IOC. Only that thread's own probes write it, and a uprobe is not re-entered on
 * one thread, so it also serves as the buffer in which a put event is put together; a buffer of each CPU would not do,
 * because uprobe programs can be preempted.
 */
struct thread {
    struct ebpfMonThread seen; /* the part that the user part reads: first */
    __u64 client; /* struct client * of the last camessage: a CAS-client thread */
    __u64 putId;
    struct inPut pending[EBPFMON_NESTED]; /* the dbPut calls under way, by depth */
    struct inPut locked; /* one that is done, and whose record may be processing still; id 0: none */
    __s64 lockedStatus;
    __u32 putDepth;
    __u32 pad;
    struct offCpu off;
    __u64 queueWait;         /* ns that the callback which this thread took out last was in its queue */
    struct ebpfMonHandOver from; /* … and who put it there */
    __u32 fromChains;        /* chains that came of that and were sent */
    __u32 fromUnsent;        /* nonzero: there was one that was not */
    __u64 callbacks;         /* the ring that it takes them out of; NO_CALLBACKS: it serves none; 0: not known */
    __u32 popping;           /* it is at that ring; POPPING_EMPTY: nothing was in it */
    __s32 emptyAt;           /* … and what comes next comes to this place */
    __u64 ending;            /* "begin" of a chain that is over and not yet sent; 0: none */
    __u64 asked;             /* the record whose lock set it asks for, or the dbLocker of several; 0: none */
    __u32 askedMany;         /* … it is a dbLocker */
    __u32 insideCount;
    struct inside inside[INSIDE_MAX]; /* the groups that it is in */
    __u64 passWait;          /* ns that it had waited for a CPU, when the pass began of which no chain is timed */
    __u64 stack[PASS_STACK]; /* room to look for the root of a chain that is not timed … */
    __u64 passRoot;          /* … and what was found; 0: nothing */
    __u64 awaited;           /* … of one that must be kept: what it handed over was sent. Other threads write it */
    struct ebpfMonPeer peer; /* of the last receive */
    __u32 copied;            /* TCP sequence number of the byte after it */
    __u32 copiedFrom;        /* … and of its first byte */
    __u32 received;          /* these two are valid; 2: this thread receives from several connections */
    __u32 pad2;
    struct ebpfMonCauseEvent cause;
    struct notified notified;
    struct putInHand put;
    struct keptChain kept;     /* the one that is being sent … */
    struct ebpfMonChain chain; /* … and its event */
    struct ebpfMonPutEvent ev; /* followed by its data: sent as one */
    __u8 data[4 * EBPFMON_VAL_MAX]; /* twice what is used: keeps the verifier's bounds simple */
};

_Static_assert(2 * EBPFMON_RECORD_SPAN <= 4 * EBPFMON_VAL_MAX, "sendChain.bpf.h reads a record into \"data\"");

/* What was put into a queue: a callback, or a record for scanOnce. */
struct queueKey {
    __u64 item;
    __u64 tgid;
};

struct inQueue {
    __u64 since;
    __u64 delayed; /* nonzero: its time has not come, "since" is when that began */
    struct ebpfMonHandOver what;
};

struct chainKey {
    __u64 begin;
    __u64 tid;
};

/* By its processNotify, which each channel has one of. */
struct notifyKey {
    __u64 ppn;
    __u64 tgid;
};

/* Nonzero: the thread has a present put: dbPut has not returned, or the chain that it made process still holds its
 * lock set. */
static inline int isInPut(const struct thread *th)
{
    if (th->locked.id)
        return th->seen.heldCount && th->seen.held[0].root == th->put.precord;
    return th->putDepth > 0 && th->putDepth < EBPFMON_NESTED;
}

#endif
