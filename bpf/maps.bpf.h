/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables that the programs share. maps.bpf.c defines them, the others declare them: the BPF linker
 * joins them by name. Sizes marked 1 are set by the user half before loading.
 */
#ifndef EBPFMON_MAPS_BPF_H
#define EBPFMON_MAPS_BPF_H

#include "core.bpf.h"
#include "ebpfMonEvent.h"

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
    __u64 blocked, queued, longest;
    __u64 handed;  /* before: in the queue that it was taken out of */
    __s32 syscall; /* it left the CPU in this one */
    __s32 longestSyscall;
    __u32 slept;   /* it did not leave because another thread should run */
    __u32 pad;
};

#define NO_CALLBACKS 1

/* Who asked for a put that is made later, when its record is no longer busy. */
struct notified {
    struct ebpfMonWho who;
    __u32 seq;     /* of the message, as in struct ebpfMonPutEvent */
    __u16 seqKind;
    __u16 made;    /* the put was made: what the record does now, it does for this one */
};

/*
 * What is known of one thread of a target. Only that thread's own probes write it, and a uprobe is not
 * re-entered on one thread, so it also serves as the buffer in which a put event is put together; a
 * per-CPU buffer would not do, because uprobe programs can be preempted.
 */
struct thread {
    struct ebpfMonThread seen; /* the part that the user half reads: first */
    __u64 client; /* struct client * of the last camessage: a CAS-client thread */
    __u64 putId;
    struct inPut pending[EBPFMON_NESTED]; /* the dbPut calls under way, by depth */
    struct inPut locked; /* one that is done, and whose record may be processing still; id 0: none */
    __s64 lockedStatus;
    __u32 putDepth;
    __u32 pad;
    struct offCpu off;
    __u64 handed;            /* ns that the callback which this thread took out last was in its queue */
    struct ebpfMonHandOver from; /* … and who put it there */
    __u64 callbacks;         /* the ring that it takes them out of; NO_CALLBACKS: it is no thread for that; 0: not known */
    __u64 popping;           /* it is at that ring */
    __u64 ending;            /* "begin" of a chain that is over and not told of yet; 0: none */
    __u64 awaited;           /* … of one that must be kept: what it handed over was told of. Other threads write it */
    struct ebpfMonPeer peer; /* of the last receive */
    __u32 copied;            /* TCP sequence number of the byte after it */
    __u32 received;          /* "copied" is valid; 2: this thread receives from several connections */
    struct ebpfMonCauseEvent cause;
    struct notified notified;
    struct ebpfMonChain chain; /* that is being told of */
    struct ebpfMonPutEvent ev; /* followed by its data: sent as one */
    __u8 data[4 * EBPFMON_VAL_MAX]; /* twice what is used: keeps the verifier's bounds simple */
};

struct lockKey {
    __u64 lockSet;
    __u64 tgid;
};

struct fldKey {
    __u64 pfldDes;
    __u64 tgid;
};

MAP struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} ring SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct ebpfMonTargetConf);
} targets SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct ebpfMonHits);
} hits SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 8192);
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

/* When a lock set was last released, to tell how long a waiter waited. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct lockKey);
    __type(value, __u64);
} released SEC(".maps");

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

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct queueKey);
    __type(value, struct inQueue);
} queued SEC(".maps");

/* Chains that were kept and handed something over: what comes of that is kept too. */
struct chainKey {
    __u64 begin;
    __u64 tid;
};

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, struct chainKey);
    __type(value, __u32);
} kept SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct ebpfMonQueues);
} queues SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct fldKey);
    __type(value, struct ebpfMonArrayConf);
} arrays SEC(".maps");

/* Who opened a local connection. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonOwner);
} owners SEC(".maps");

/* The same while connect() is under way and the local port not chosen yet; by struct sock address. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 4096);
    __type(key, __u64);
    __type(value, struct ebpfMonOwner);
} connecting SEC(".maps");

/* Who began what is processing asynchronously; by slot, valid while ebpfMonRecState.noted says so. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, __u32);
    __type(value, struct ebpfMonCauseEvent);
} causes SEC(".maps");

/* Who called dbProcessNotify; by its processNotify, which each channel has one of. */
struct notifyKey {
    __u64 ppn;
    __u64 tgid;
};

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 8192);
    __type(key, struct notifyKey);
    __type(value, struct notified);
} notifies SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPFMON_LOST_KERNEL);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

static __always_inline void countLost(__u32 reason)
{
    __u64 *n = bpf_map_lookup_elem(&lost, &reason);

    if (n)
        __sync_fetch_and_add(n, 1);
}

/* Place "at" of the table of closures; 0: there is none. */
static __always_inline int closureEntry(__u32 at, __u32 *entry)
{
    __u32 pair = at / 2;
    struct ebpfMonClosurePair *p = bpf_map_lookup_elem(&closure, &pair);

    if (!p)
        return 0;
    *entry = at & 1 ? p->entry[1] : p->entry[0];
    return 1;
}

/* The slot of a record; 0: it is not watched. */
static __always_inline int recordSlot(__u32 tgid, __u64 precord, __u32 *slot)
{
    struct ebpfMonRecKey key = { .tgid = tgid, .precord = precord };
    __u32 *s = bpf_map_lookup_elem(&recIndex, &key);

    if (!s)
        return 0;
    *slot = *s;
    return 1;
}

static __always_inline void countHit(__u32 tgid, __u32 kind, __u64 add)
{
    struct ebpfMonHits *h = bpf_map_lookup_elem(&hits, &tgid);

    if (h && kind < EBPFMON_HIT_KINDS)
        h->n[kind] += add;
}

static __always_inline int isKept(const struct ebpfMonSourceChain *by)
{
    struct chainKey key = { by->begin, by->tid };

    return by->begin && bpf_map_lookup_elem(&kept, &key);
}

/* What "by" handed over is done. Nobody waits for it if that chain is over, and was not kept. */
static __always_inline void tellDone(const struct ebpfMonTargetConf *conf, const struct ebpfMonSourceChain *by)
{
    struct ebpfMonHandOverEvent *ev;
    __u64 id = bpf_get_current_pid_tgid();

    if (!by->begin || (conf->level < EBPFMON_TRACE && !isKept(by)))
        return;
    ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);
    if (!ev) {
        countLost(EBPFMON_LOST_RING);
        return;
    }
    ev->head.kind = EBPFMON_EV_HANDOVER_END;
    ev->head.tgid = id >> 32;
    ev->head.tid = (__u32)id;
    ev->head.iocId = conf->iocId;
    ev->head.ktime = bpf_ktime_get_ns();
    ev->what.by = *by;
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
}

/* It left its queue. Returns how long it was there (ns), and who put it there. */
static __always_inline __u64 takenOut(const struct ebpfMonTargetConf *conf, __u32 tgid, __u64 item, __u32 queue,
                                      __u64 now, struct ebpfMonHandOver *what)
{
    struct queueKey key = { item, tgid };
    struct inQueue *in = bpf_map_lookup_elem(&queued, &key);
    struct ebpfMonQueues *qs;
    __u64 wait;

    if (!in || in->delayed || in->since < conf->queuesSince || queue >= EBPFMON_QUEUES)
        return 0;
    wait = now > in->since ? now - in->since : 0;
    *what = in->what;
    bpf_map_delete_elem(&queued, &key);
    qs = bpf_map_lookup_elem(&queues, &tgid);
    if (!qs)
        return wait;
    barrier_var(queue); /* as in heldAt */
    queue &= EBPFMON_QUEUES - 1;
    __sync_fetch_and_add(&qs->q[queue].count, 1);
    __sync_fetch_and_add(&qs->q[queue].sum, wait);
    ebpfMonRecentAdd(&qs->q[queue].wait, now, wait, item);
    return wait;
}

/* The state of this thread, made when it is first needed; NULL: the table is full, counted as lost. */
static __always_inline struct thread *threadOf(__u32 tid)
{
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);
    struct thread *first;
    __u32 zero = 0;

    if (th)
        return th;
    first = bpf_map_lookup_elem(&blank, &zero);
    if (!first)
        return 0;
    bpf_map_update_elem(&threads, &tid, first, BPF_NOEXIST);
    th = bpf_map_lookup_elem(&threads, &tid);
    if (th)
        th->seen.tgid = bpf_get_current_pid_tgid() >> 32;
    else
        countLost(EBPFMON_LOST_THREADS);
    return th;
}

/* The mask stays, whatever the compiler knows of n: the verifier may have lost it. */
static __always_inline struct ebpfMonHeld *heldAt(struct thread *th, __u32 n)
{
    barrier_var(n);
    return &th->seen.held[n & (EBPFMON_NESTED - 1)];
}

#endif
