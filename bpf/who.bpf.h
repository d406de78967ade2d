/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* On whose behalf a thread of an IOC runs: the client of its circuit, as that claims and as the kernel knows. */
#ifndef EBPFMON_WHO_BPF_H
#define EBPFMON_WHO_BPF_H

#include "maps.bpf.h"

#define AF_INET 2

static __always_inline __u64 readPtr(__u64 at)
{
    __u64 p = 0;

    bpf_probe_read_user(&p, sizeof(p), (void *)at);
    return p;
}

/* The CA circuit: claimed names, and the peer if no receive told it (kernels before 6.3). */
static __always_inline void readClient(struct ebpfMonWho *who, const struct ebpfMonTargetConf *conf, __u64 client)
{
    struct {
        __u16 family, port;
        __u32 addr;
    } sin = {};

    who->isCA = 1;
    bpf_probe_read_user(&sin, sizeof(sin), (void *)(client + conf->clAddr));
    if (sin.family == AF_INET && (who->peer.addr != sin.addr || who->peer.port != sin.port)) {
        who->peer.saddr = 0;
        who->peer.sport = 0;
        who->peer.netns = 0;
        who->peer.addr = sin.addr;
        who->peer.port = sin.port;
    }
    bpf_probe_read_user_str(who->user, sizeof(who->user), (void *)readPtr(client + conf->clUser));
    bpf_probe_read_user_str(who->host, sizeof(who->host), (void *)readPtr(client + conf->clHost));
}

/* "client": struct client of the circuit, 0: none, the last receive tells. */
static __always_inline void readWho(struct ebpfMonWho *who, const struct thread *th,
                                    const struct ebpfMonTargetConf *conf, __u64 client)
{
    struct ebpfMonOwner *own;

    who->isCA = 0;
    who->user[0] = who->host[0] = 0;
    bpf_get_current_comm(who->comm, sizeof(who->comm));
    who->peer = th->peer;
    if (client)
        readClient(who, conf, client);
    own = bpf_map_lookup_elem(&owners, &who->peer);
    if (own)
        who->owner = *own;
    else
        who->owner.pid = 0;
}

/* For whom this thread processes the chain of this record: a put-callback that waited goes on in a callback's thread.
 * While it waits the record's ppn is its already, and what the record does is done for somebody else. */
static __always_inline void readCaller(struct ebpfMonWho *who, const struct thread *th,
                                       const struct ebpfMonTargetConf *conf, __u32 tgid, __u64 root)
{
    struct notifyKey nk = { 0, tgid };
    struct notified *asked;

    if (!th->client && root && (nk.ppn = readPtr(root + conf->ppn))) {
        asked = bpf_map_lookup_elem(&notifies, &nk);
        if (asked && asked->made) {
            *who = asked->who;
            return;
        }
    }
    readWho(who, th, conf, th->client);
}

/* What came of a put, and what the field holds now. */
static __always_inline void tellResult(const struct ebpfMonTargetConf *conf, __u32 tgid, __u32 tid,
                                       const struct inPut *in, __s64 status)
{
    struct ebpfMonResultEvent *ev = bpf_ringbuf_reserve(&ring, sizeof(*ev), 0);
    __u64 n = in->size;

    if (!ev) {
        countLost(EBPFMON_LOST_RING);
        return;
    }
    ev->head.kind = EBPFMON_EV_RESULT;
    ev->head.tgid = tgid;
    ev->head.tid = tid;
    ev->head.iocId = conf->iocId;
    ev->head.ktime = bpf_ktime_get_ns();
    ev->id = in->id;
    ev->status = status;
    ev->pad = 0;
    ev->afterLen = 0;
    /* Two tests in one expression become one on a copy, and verifiers up to 6.12 do not know that n is bounded then. */
    if (n > EBPFMON_AFTER_MAX)
        n = 0;
    barrier_var(n);
    if (n && !bpf_probe_read_user(ev->after, n, (void *)in->pfield))
        ev->afterLen = n;
    bpf_ringbuf_submit(ev, BPF_RB_NO_WAKEUP);
}

#endif
