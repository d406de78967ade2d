/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Keys and values of tables that only the kernel part uses. The programs of queries use some of them, too. */
#ifndef EBPFMON_THREAD_BPF_H
#define EBPFMON_THREAD_BPF_H

#include "ebpfMonTable.h"

/* A call of dbPut() that has not returned. */
struct inPut {
    __u64 id;
    __u64 sp;     /* stack pointer at its entry */
    __u64 pfield;
    __u32 size;   /* bytes of the value; 0: an array */
    __u32 locked; /* nonzero: its result is sent when the lock set is released */
};

/* How a thread spent its time since it requested its first lock set. offCpu.bpf.c writes it. */
struct offCpu {
    __u64 left;    /* when it left the CPU; 0: it runs, or holds no lock set */
    __u64 woken;   /* when it was woken after that */
    __u64 blocked, cpuWait, longest;
    __u64 queueWait; /* ns that it was in a queue before */
    __s32 syscall; /* the system call in which it left the CPU */
    __s32 longestSyscall;
    __u32 slept;   /* nonzero: it went to sleep; 0: it left because another thread should run */
    __u32 pad;
};

#define NO_CALLBACKS 1

/* values of struct thread.popping */
#define POPPING_NOT   0
#define POPPING       1
#define POPPING_EMPTY 2

/* The client of a put that is made later, when the record is no longer busy. */
struct notified {
    struct ebpfMonWho who;
    __u32 seq;     /* of the message: see struct ebpfMonPutEvent */
    __u32 seqFrom;
    __u16 seqKind;
    __u16 made;    /* nonzero: the put was made; the record now processes for this client */
};

/* The records that a chain left processing asynchronously. */
struct leftBusy {
    __u32 async[EBPFMON_ASYNC]; /* 1 + slot */
    __u32 more;                 /* nonzero: there were more; for the first ones the cause is not known */
};

/* A chain that will be sent. The stack has no room for it. */
struct keptChain {
    __u64 causeBegin; /* begin of the chain that began what this one completes */
    __u64 wait, begin, now;
    __u32 causeTid; /* thread of that chain; 0: there is none */
    __u32 slot;    /* slot of its root */
    __u32 counted; /* records that it processed */
    __u32 flags;   /* EBPFMON_CHAIN_LATE, EBPFMON_CHAIN_MORE or 0 */
    struct leftBusy left;
};

/* The present put of a thread: its outermost dbPut(), also for the records that this makes process. Valid if isInPut()
 * is nonzero. */
struct putInHand {
    __u64 precord;
    __u64 pfldDes;
    struct ebpfMonWho who;
    __u32 number; /* with the thread's id it tells this put from all others */
};

/* A group of records (ebpfMonRecState.group) that a thread may process, because it holds this lock. */
struct inside {
    __u64 lock;   /* see struct groupThread.requested */
    __u32 group;
    __u32 sweeps; /* ebpfMonTargetConf.sweeps at that time */
};

#define INSIDE_MAX 64 /* a power of two */

/*
 * What the kernel part knows of one thread of a watched IOC. Only the probes of that thread write it, except "awaited".
 * A uprobe does not interrupt another one of its thread, so this is also the buffer for a put event. A buffer for each
 * CPU would not do, because programs of uprobes can be preempted.
 */
struct thread {
    struct ebpfMonThread seen; /* the part that the user part reads; it must be first */
    __u64 client; /* struct client of the CA circuit that it serves; 0: it serves none, or we do not know it yet */
    __u64 putId;
    struct inPut pending[EBPFMON_NESTED]; /* calls of dbPut() that have not returned, by depth */
    struct inPut locked; /* a put that has returned, but its record may still be processing; id 0: there is none */
    __s64 lockedStatus;
    __u32 putDepth;
    __u32 callbackQueue; /* 1 + the priority of the callbacks of its ring; 0: not known */
    struct offCpu off;
    __u64 queueWait;         /* ns that the last callback, which this thread took out, was in its queue */
    struct ebpfMonHandOver from; /* … and its source chain */
    __u32 fromChains;        /* chains to which that led, and that were sent */
    __u32 fromUnsent;        /* nonzero: some such chain was not sent */
    __u64 callbacks;         /* the ring from which it takes callbacks; NO_CALLBACKS: it serves none; 0: not known */
    __u32 popping;           /* POPPING: it looks into that ring; POPPING_EMPTY: the ring was empty */
    __s32 emptyAt;           /* … and the next callback will come to this place */
    __u64 popAt;             /* when it began to look into the empty ring */
    __u64 ending;            /* "begin" of a chain that has ended and is not sent yet; 0: there is none */
    __u64 passWait;          /* ns that it had waited for a CPU before the present pass with chains that are not
                              * timed */
    __u64 stack[EBPFMON_PASS_STACK]; /* room for a copy of its stack, in which the root is found … */
    __u64 passRoot;          /* … and the root; 0: not found */
    __u64 awaited;           /* "begin" of a chain that must be kept, because a chain to which it led was sent. Other
                              * threads write this */
    struct ebpfMonPeer peer; /* connection of its last receive; or that it serves (isServing) */
    struct ebpfMonFirst first; /* … of this connection */
    __u32 copied;            /* TCP sequence number after the last byte of that receive */
    __u32 copiedFrom;        /* … and of its first byte */
    __u32 isNew;             /* … of this connection, as in struct ebpfMonServed */
    __u32 received;          /* nonzero: peer, copied and copiedFrom are valid; 2: it receives from several
                              * connections */
    __u32 serving;           /* ebpfMonTargetConf.serving when it began to serve "peer"; 0: that was not seen */
    __u64 conn;              /* … and the ServerConn of that connection (pvxs) */
    __u32 putsLink;          /* nonzero: it has begun a put to a link, and not released its locks */
    __u32 putIdMany;         /* putId when it released several lock sets last */
    struct ebpfMonCauseEvent cause;
    __u64 processed;         /* the record that code outside of Base processed last, by dbProcess(), while it holds a
                              * lock set; 0: none */
    __u64 processedSp;       /* … and the stack pointer at that call */
    struct notified notified;
    struct putInHand put;
    struct keptChain kept;     /* the chain that is being sent … */
    struct ebpfMonChain chain; /* … and its event */
    struct ebpfMonPutEvent ev; /* followed by its data; both are sent as one event */
    __u8 data[4 * EBPFMON_VAL_MAX]; /* twice the bytes that are used, to keep the verifier's bounds simple */
};

/* What the kernel part knows of a thread that takes locks while passes of scan lists are watched (group.bpf.c). Only
 * the probes of that thread write it. It is no part of struct thread, because that is forgotten when the level rises,
 * and a thread leaves its groups also if it entered them before. */
struct groupThread {
    __u64 requested; /* it requests the lock set of this record, or the lock sets of this dbLocker; 0: it requests
                      * none */
    __u32 requestedMany; /* nonzero: "requested" is a dbLocker */
    __u32 insideCount;
    struct inside inside[INSIDE_MAX]; /* the groups in which it is */
    __u32 sweepsSeen; /* ebpfMonTargetConf.sweeps when it took or released a lock while puts that move records were
                       * seen */
    __u32 scanPuts;   /* puts to fields that control scanning, which it may not have done yet … */
    __u32 scanPutsSweeps; /* … and ebpfMonTargetConf.sweeps at that time */
    __u32 pad;
};

_Static_assert(sizeof(struct groupThread) <= sizeof(struct thread), "both begin as a copy of the map \"blank\"");
_Static_assert(2 * EBPFMON_RECORD_SPAN <= 4 * EBPFMON_VAL_MAX, "sendChain.bpf.h reads a record into \"data\"");

/* The key of something in a queue: a callback, or a record for scanOnce. */
struct queueKey {
    __u64 item;
    __u64 tgid;
};

/* It stays when the item has left the queue, because to make a new element costs more than to write one. */
struct inQueue {
    __u64 since;   /* monotonic ns; 0: it is not in the queue, or this is being written */
    __u64 delayed; /* nonzero: its delay has not ended; "since" is the begin of the delay */
    __u64 writing; /* nonzero: a program is writing this */
    struct ebpfMonHandOver what;
};

/* A connect that is under way. */
struct connectPlace {
    __u64 sk; /* address of its struct sock; 0: the place is free */
    struct ebpfMonOwner owner;
};

#define CONNECT_PLACES_LOG 10

struct chainKey {
    __u64 begin;
    __u64 tid;
};

/* By the address of a processNotify. Each channel has one of its own. */
struct notifyKey {
    __u64 ppn;
    __u64 tgid;
};

/* Nonzero: the thread has a present put: dbPut() has not returned, or the chain that the put made process still holds
 * its lock set. */
static inline int isInPut(const struct thread *th)
{
    if (th->locked.id)
        return th->seen.heldCount && th->seen.held[0].root == th->put.precord;
    return th->putDepth > 0 && th->putDepth < EBPFMON_NESTED;
}

#endif
