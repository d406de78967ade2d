/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* What queries learn from the kernel part about a thread: its chain, its present put, the writer of this put, and the
 * client that it serves. */
#ifndef EBPFMON_QUERYWHO_BPF_H
#define EBPFMON_QUERYWHO_BPF_H

#define MAP /* defines the tables */
#include "common/readMaps.bpf.h"
#include "shared/ebpfMonQuery.h"

/* An event. */
struct queryEvent {
    __u64 arg[EBPFMON_QUERY_ARGS];
    __u64 returned, duration, syscall, now; /* now: 0 if the clock was not read */
    void *ctx;
    __u64 ip;   /* the address of the probe */
    __u64 regs; /* address of the thread's registers; 0: the query does not need them */
    struct task_struct *task, *before; /* the thread of the event, and the one that had the CPU before; NULL: the
                                        * current thread */
    __u32 tgid, tid, iocId, preempted;
    __u32 unread; /* arguments of a USDT probe that could not be read, a bit each */
    struct ebpfMonQueryCounts *counts;
};

static __always_inline struct thread *getThread(const struct queryEvent *e)
{
    __u32 tid = e->tid;
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);

    return th && th->seen.tgid == e->tgid ? th : 0;
}

/* The root of the chain that this thread is in. Lock sets are known from level chains on. */
static __always_inline __u64 findRoot(const struct queryEvent *e)
{
    __u32 n;
    struct thread *th = getThread(e);

    n = th ? th->seen.heldCount : 0;
    if (!n || n > EBPFMON_NESTED)
        return 0;
    n--;
    barrier_var(n);
    return th->seen.held[n & (EBPFMON_NESTED - 1)].root;
}

/* Finds who began the asynchronous processing that completes in the chain of "root". NULL: there is none, or it is not
 * known, or no put began it. */
static __always_inline struct ebpfMonCauseEvent *findCause(const struct queryEvent *e, __u64 root)
{
    struct ebpfMonRecKey key = { .tgid = e->tgid, .precord = root };
    __u32 *slot = root ? bpf_map_lookup_elem(&recIndex, &key) : 0, at;
    struct ebpfMonCauseEvent *known;
    struct ebpfMonRecState *st;

    if (!slot)
        return 0;
    at = *slot;
    st = findState(at);
    if (!st || st->noted != EBPFMON_NOTED_CAUSE)
        return 0;
    known = bpf_map_lookup_elem(&causes, &at);
    return known && known->head.tgid == e->tgid && known->putRecord ? known : 0;
}

static __always_inline void readPut(const struct queryEvent *e, __u64 *to)
{
    struct thread *th = getThread(e);
    struct ebpfMonCauseEvent *cause;

    to[0] = e->iocId;
    if (th && isInPut(th)) {
        to[1] = th->put.precord;
        to[2] = th->put.pfldDes;
    } else if ((cause = findCause(e, findRoot(e)))) {
        to[1] = cause->putRecord;
        to[2] = cause->putField;
    }
}

/* The number of the put: different for each. 0: none. */
static __always_inline __u64 findPutNumber(const struct queryEvent *e)
{
    struct thread *th = getThread(e);
    struct ebpfMonCauseEvent *cause;

    if (th && isInPut(th))
        return (__u64)e->tid << 32 | th->put.number;
    cause = findCause(e, findRoot(e));
    return cause ? cause->putNumber : 0;
}

static __always_inline void setPeer(const struct ebpfMonPeer *peer, struct ebpfMonQueryWho *to)
{
    to->kind = EBPFMON_QUERY_BY_PEER;
    to->peer.addr = peer->addr;
    __builtin_memcpy(to->host, peer->addr6, sizeof(peer->addr6));
    to->peer.port = peer->port;
}

static __always_inline void setWho(const struct ebpfMonWho *who, struct ebpfMonQueryWho *to)
{
    if (who->isCA) {
        to->kind = EBPFMON_QUERY_BY_CA;
        bpf_probe_read_kernel_str(to->user, sizeof(to->user), who->user);
        bpf_probe_read_kernel_str(to->host, sizeof(to->host), who->host);
    } else if (who->peer.addr) {
        setPeer(&who->peer, to);
    } else {
        to->kind = EBPFMON_QUERY_BY_THREAD;
        __builtin_memcpy(to->comm, who->comm, sizeof(to->comm));
    }
}

static __always_inline void readAuthor(const struct queryEvent *e, struct ebpfMonQueryWho *to)
{
    struct thread *th = getThread(e);
    struct ebpfMonCauseEvent *cause;

    if (th && isInPut(th))
        setWho(&th->put.who, to);
    else if ((cause = findCause(e, findRoot(e))))
        setWho(&cause->who, to);
}

static __always_inline void readUserText(char *to, __u32 size, __u64 at)
{
    __u64 text = 0;

    bpf_probe_read_user(&text, sizeof(text), (void *)at);
    bpf_probe_read_user_str(to, size, (void *)text);
}

/* "client": address of a client of the CA server of this IOC. 0, or nonzero: the layout is not known. */
static __always_inline int readCaClient(const struct queryEvent *e, __u64 client, struct ebpfMonQueryWho *to)
{
    __u32 tgid = e->tgid;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);

    if (!conf)
        return -1;
    to->kind = EBPFMON_QUERY_BY_CA;
    readUserText(to->user, sizeof(to->user), client + conf->clUser);
    readUserText(to->host, sizeof(to->host), client + conf->clHost);
    return 0;
}

/* Finds the client of the current thread only, because the names are in its memory. */
static __always_inline void readClient(const struct queryEvent *e, struct ebpfMonQueryWho *to)
{
    struct thread *th = getThread(e);

    if (th && (!th->client || readCaClient(e, th->client, to)) && th->peer.addr)
        setPeer(&th->peer, to);
}

#endif
