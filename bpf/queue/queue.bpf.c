// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Measures how long callbacks and records for scanOnce wait in their queues, and finds which chains put them there.
 *
 * callbackRequest() puts a callback into a ring, and a thread for callbacks takes it out with epicsRingPointerPop()
 * (callback.c, callbackTask). At the entry of that function the callback is still at the ring's head, so we need no
 * return probe. But if several threads share a ring (callbackParallelThreads), two of them can look at the same
 * callback; only the return tells which one gets it. If the ring is empty at the entry, a callback may still come
 * before the function looks. We find that when the thread locks a record, or looks for the next callback (takeLate).
 *
 * scanOnce works in the same way with a ring of its own, and its thread then locks the record (ebpfmon_lock).
 */
#include "pass/passRoot.bpf.h"
#include "thread/handOver.bpf.h"

/* The present chain of this thread hands something over: it is the source chain. */
static __always_inline void fillSource(const struct caller *c, struct ebpfMonSourceChain *source)
{
    struct thread *th = bpf_map_lookup_elem(&threads, &c->tid);
    struct ebpfMonHeld *h;

    source->begin = 0;
    if (!th)
        return;
    h = getLastHeld(th);
    if (!h)
        return;
    h->handOvers++;
    source->begin = h->begin;
    source->root = findChainRoot(c, th, h);
    source->tid = c->tid;
    source->isMain = c->tid == c->tgid;
    bpf_get_current_comm(source->comm, sizeof(source->comm));
}

/* Nonzero: this is the thread of timers. For callbackRequestDelayed() a timer calls callbackRequest() (callback.c,
 * notify); then the source chain is the one that asked for the delay. But a timer may have been cancelled, and another
 * thread may request the same callback. */
static __always_inline int isTimer(void)
{
    char comm[EBPFMON_COMM_MAX] = {};

    bpf_get_current_comm(comm, sizeof(comm)); /* timerQueueActive.cpp: "timerQueue" */
    return comm[0] == 't' && comm[1] == 'i' && comm[2] == 'm' && comm[3] == 'e' && comm[4] == 'r' && comm[5] == 'Q';
}

/* Gets the element of this item; the first call makes it. NULL without memory. */
static __always_inline struct inQueue *getQueued(const struct queueKey *key)
{
    static const struct inQueue none;
    struct inQueue *in = bpf_map_lookup_elem(&queued, key);

    if (in)
        return in;
    bpf_map_update_elem(&queued, key, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&queued, key);
}

/* Nonzero: this program may write the element; *since: what it was. If another program is writing it, both put the
 * item into the queue at the same time, and it runs for the other one. Before 5.12 there are no atomic operations for
 * that. */
static __always_inline int beginWriting(struct inQueue *in, __u64 *since)
{
#ifdef EBPFMON_OLD_KERNEL
    *since = in->since;
    *(volatile __u64 *)&in->since = 0;
#else
    if (__sync_lock_test_and_set(&in->writing, 1))
        return 0;
    *since = __sync_lock_test_and_set(&in->since, 0);
#endif
    return 1;
}

static __always_inline void endWriting(struct inQueue *in, __u64 now)
{
#ifdef EBPFMON_OLD_KERNEL
    *(volatile __u64 *)&in->since = now;
#else
    __sync_lock_test_and_set(&in->since, now); /* a barrier: who finds it finds the rest, too */
    __sync_lock_test_and_set(&in->writing, 0);
#endif
}

/* The CP link of the record "precord" that this struct caLink is about (its member plink, dbCaPvt.h): which of its
 * pointers that is depends on the release. 0: none leads to a link of this record. */
static __always_inline __u64 findCpLink(const struct ebpfMonTargetConf *conf, const struct ebpfMonHandOver *what,
                                        __u64 precord)
{
#pragma unroll
    for (__u32 i = 0; i < EBPFMON_CALINK_SIZE / sizeof(__u64); i++) {
        __u64 at = ((const __u64 *)what->caLink)[i];

        if (at - precord < EBPFMON_RECORD_MAX && readPtr(at + conf->linkOwner) == precord)
            return at;
    }
    return 0;
}

/* Writes who puts the item into the queue. "since": when it was put there before, and was not taken out yet; 0: it was
 * not. */
static __always_inline void writeQueued(const struct caller *c, struct inQueue *in, __u64 since, __u64 now,
                                        __u64 precord, __u64 caLink, int delayed)
{
    struct ebpfMonSourceChain *source = &in->what.source;
    struct ebpfMonSourceChain before = {};
    int isSame, isQueued = since && since >= c->conf->queuesSince;
    __u64 link;

    if (isQueued && source->begin)
        before = *source;
    fillSource(c, source);
    isSame = before.begin && in->delayed && !delayed && !source->begin && isTimer();
    if (isSame) { /* its delay is over */
        *source = before;
        in->what.delay = now - since;
        return;
    }
    in->what.delay = 0;
    link = caLink && !bpf_probe_read_user(in->what.caLink, sizeof(in->what.caLink), (void *)caLink)
               ? findCpLink(c->conf, &in->what, precord) : 0;
    if (isQueued && in->what.cpLink != link)
        link = 0; /* the record is in the queue twice: which of both comes first is not known here */
    in->what.cpLink = link;
    if (before.begin)
        /* If a callback is requested twice, it runs for the last request. A delay that starts again ends only
         * once. */
        sendHandOverEnd(c, &before, 0, !(in->delayed && delayed));
}

static __always_inline void noteQueued(__u64 item, __u64 caLink, int delayed, __u64 now)
{
    struct queueKey key = { item, 0 };
    struct inQueue *in;
    struct caller c;
    __u64 since;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return;
    key.tgid = c.tgid;
    in = getQueued(&key);
    if (!in || !beginWriting(in, &since))
        return;
    writeQueued(&c, in, since, now, item, caLink, delayed);
    in->delayed = delayed;
    endWriting(in, now);
}

/* callbackRequest(epicsCallback *) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_callback, __u64 callback)
{
    RUN_TIMED(noteQueued(callback, 0, 0, now));
}

/* callbackRequestDelayed(epicsCallback *, double) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_delayed, __u64 callback)
{
    RUN_TIMED(noteQueued(callback, 0, 1, now));
}

/* scanOnceCallback(dbCommon *, once_complete cb, void *usr). Only dbCa.c (scanLinkOnce) of Base has a third argument:
 * struct caLink *. Before 3.16 the function is scanOnce(dbCommon *). */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_once, __u64 precord, __u64 complete, __u64 caLink)
{
    struct caller c;

    RUN_TIMED(noteQueued(precord, findCaller(&c) && c.conf->onceHasLink ? caLink : 0, 0, now));
}

/* Nonzero: the ring has callbacks. Drivers may have such rings, too. A thread for callbacks has a name ("cbLow";
 * callback.c, callbackInit), and the ring of its callbacks is the first one that it looks into. */
static __always_inline int isCallbackRing(struct thread *th, __u64 ring)
{
    char comm[EBPFMON_COMM_MAX] = {};

    if (!th->callbacks) {
        bpf_get_current_comm(comm, sizeof(comm));
        th->callbacks = comm[0] == 'c' && comm[1] == 'b' ? ring : NO_CALLBACKS;
    }
    return th->callbacks == ring;
}

static __always_inline void seePop(__u64 ring, __u64 now)
{
    struct ringHead head = {};
    __u64 callback;
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = getThread(c.tid)))
        return;
    takeLate(&c, th);
    th->popping = isCallbackRing(th, ring) ? POPPING : POPPING_NOT;
    if (!th->popping)
        return;
    endHandOver(&c, th); /* the thread looks for its next callback, so the last one is done */
    th->seen.busySince = 0;
    th->seen.heldCount = 0; /* a callback does not keep locks; this one may have begun when other probes were on */
    if (c.conf->parallel || bpf_probe_read_user(&head, sizeof(head), (void *)(ring + c.conf->ringHead)))
        return;
    if (head.nextPush == head.nextPop) {
        th->emptyAt = head.nextPop;
        th->popAt = now;
        th->popping = POPPING_EMPTY;
    } else if ((callback = readCallback(&head, head.nextPop))) {
        beginCallback(&c, th, callback, now);
    }
}

/* epicsRingPointerPop(epicsRingPointerId) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_pop, __u64 ring)
{
    RUN_TIMED(seePop(ring, now));
}

static __always_inline void seePopped(__u64 callback, __u64 now)
{
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_RETURN))
        return;
    th = bpf_map_lookup_elem(&threads, &c.tid);
    if (th && th->popping == POPPING && callback)
        beginCallback(&c, th, callback, now);
}

SEC("uprobe")
int BPF_URETPROBE(ebpfmon_popped, __u64 callback)
{
    RUN_TIMED(seePopped(callback, now));
}
