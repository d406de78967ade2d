/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables that the programs share. maps.bpf.c defines them, the others declare them: the BPF linker joins them by
 * name. Tables of size 1 get their size from the user part before they are loaded. Keys and values that the user part
 * sees are in ebpfMonTable.h; the structs here are the kernel part's own.
 */
#ifndef EBPFMON_MAPS_BPF_H
#define EBPFMON_MAPS_BPF_H

#include "core.bpf.h"
#include "ebpfMonTable.h"

#ifndef MAP
#define MAP extern
#endif

/* One dbPut under way. */
struct inPut {
    __u64 id;
    __u64 sp;     /* the stack pointer at its entry */
    __u64 pfield;
    __u32 size;   /* bytes of a single value, 0: an array */
    __u32 locked; /* its result waits for the lock's release */
};

/* What a thread did with its time since it asked for its first lock; the scheduler's tracepoints write it. */
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

MAP struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* Nonzero: the reader of this ring sleeps (wake.bpf.h). The user part sets it. */
extern volatile __u32 ringSleeps;

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonTargetConf);
} targets SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonHits);
} hits SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonQueues);
} queues SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_THREADS_MAX);
    __type(key, __u32);
    __type(value, struct thread);
} threads SEC(".maps");

/* A thread's first state: too large for the stack. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct thread);
} blank SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, struct ebpfMonRecKey);
    __type(value, __u32);
} recIndex SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonRecConf);
} recConf SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonRecState);
} recState SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonClosurePair);
} closure SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonRootStat);
} roots SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_LISTS_MAX);
    __type(key, struct ebpfMonListKey);
    __type(value, struct ebpfMonList);
} lists SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonMoved);
} moved SEC(".maps");

/* When a lock set was last released, to tell how long a waiter waited. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_RELEASED_MAX);
    __type(key, struct ebpfMonLockKey);
    __type(value, __u64);
} released SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_QUEUED_MAX);
    __type(key, struct queueKey);
    __type(value, struct inQueue);
} queued SEC(".maps");

/* Chains that were kept and handed something over: what comes of that is kept too. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_KEPT_MAX);
    __type(key, struct chainKey);
    __type(value, __u32);
} kept SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_ARRAYS_MAX);
    __type(key, struct ebpfMonFieldKey);
    __type(value, struct ebpfMonArrayConf);
} arrays SEC(".maps");

/* Who opened a local connection. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_OWNERS_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonOwner);
} owners SEC(".maps");

/* The same while connect() is under way and the local port not chosen yet; by struct sock address. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CONNECTS_MAX);
    __type(key, __u64);
    __type(value, struct ebpfMonOwner);
} connecting SEC(".maps");

/* Who began what is processing asynchronously; by slot, valid while ebpfMonRecState.noted says so. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CAUSES_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonCauseEvent);
} causes SEC(".maps");

/* Who called dbProcessNotify. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_NOTIFIES_MAX);
    __type(key, struct notifyKey);
    __type(value, struct notified);
} notifies SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPFMON_LOST_KERNEL);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

#endif
