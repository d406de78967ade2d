/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The client for which a thread of an IOC works: the names that the client claims, and what the kernel knows about
 * it. */
#ifndef EBPFMON_CLIENT_BPF_H
#define EBPFMON_CLIENT_BPF_H

#include "common/probe.bpf.h"

/* Nonzero: this is the connection of the CA circuit "client" (struct client). */
static __always_inline int isConnectionOf(const struct ebpfMonTargetConf *conf, __u64 client,
                                          const struct ebpfMonPeer *peer)
{
    struct {
        __u16 family, port;
        __u32 addr;
    } sin = {};

    return !bpf_probe_read_user(&sin, sizeof(sin), (void *)(client + conf->clAddr)) && sin.addr == peer->addr &&
           sin.port == peer->port;
}

/* Reads the circuit of a CA client: the claimed names, and the peer if no receive has shown it (kernels before 6.3). */
static __always_inline void readCircuit(struct ebpfMonWho *who, const struct ebpfMonTargetConf *conf, __u64 client)
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
        who->peer.netns = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), nsproxy, net_ns, ns.inum);
        who->peer.addr = sin.addr;
        who->peer.port = sin.port;
        __builtin_memset(who->peer.addr6, 0, sizeof(who->peer.addr6)); /* the CA server listens at IPv4 only */
        __builtin_memset(who->peer.saddr6, 0, sizeof(who->peer.saddr6));
    }
    bpf_probe_read_user_str(who->user, sizeof(who->user), (void *)readPtr(client + conf->clUser));
    bpf_probe_read_user_str(who->host, sizeof(who->host), (void *)readPtr(client + conf->clHost));
}

/* Nonzero: we saw how the thread began to serve the connection "peer"; else it has received from it last. pvxs receives
 * from several clients before it serves the first one (ebpfmon_serve). */
static __always_inline int isServing(const struct thread *th, const struct ebpfMonTargetConf *conf)
{
    return conf->serving && th->serving == conf->serving;
}

/* Nonzero: the thread serves the connection "peer", and no other one. */
static __always_inline int isCertain(const struct thread *th, const struct ebpfMonTargetConf *conf)
{
    return th->received == 1 || isServing(th, conf);
}

static __always_inline struct ebpfMonOwned *findOwned(const struct ebpfMonPeer *peer)
{
    struct ebpfMonOwned *own = bpf_map_lookup_elem(&owners, peer);

    return own ? own : bpf_map_lookup_elem(&endedOwners, peer);
}

static __always_inline int isFirstKnown(const struct ebpfMonFirst *first)
{
    return first->seq[0] || first->seq[1];
}

/* The same of an earlier connection with these ends, which has ended. */
static __always_inline struct ebpfMonOwned *findEarlier(const struct ebpfMonPeer *peer,
                                                        const struct ebpfMonFirst *first)
{
    struct ebpfMonEarlierKey key = { .peer = *peer, .first = *first };

    return bpf_map_lookup_elem(&earlier, &key);
}

/* Whether this is the connection with these numbers, as far as both are known. */
static __always_inline int mayBeSame(const struct ebpfMonOwned *own, const struct ebpfMonFirst *first)
{
    return !isFirstKnown(&own->first) || ebpfMonFirstIsSame(&own->first, first);
}

/*
 * Who opened the connection "peer", from which the thread has received.
 *
 * In the namespace of the server there is one such connection at a time, but the thread may still read from one that
 * has ended. Any user can make another namespace with the same addresses: there only the sequence numbers show that a
 * socket is the other end of this connection. If the client's socket is older than the monitor, they are not known.
 * Then it counts if the server's socket is older, too, and only one namespace had such a socket (ebpfMonKernelGetOwner
 * does not look at the latter).
 */
static __always_inline struct ebpfMonOwned *findOwner(const struct ebpfMonPeer *peer, const struct thread *th)
{
    struct ebpfMonOwned *own = findOwned(peer);
    struct ebpfMonPeer at = *peer;
    __u32 *netns;

    if (own)
        return mayBeSame(own, &th->first) ? own : findEarlier(peer, &th->first);
    if (ebpfMonIsLoopback(peer->addr, peer->addr6))
        return 0;
    at.netns = 0;
    netns = bpf_map_lookup_elem(&clientNetns, &at);
    if (!netns)
        return 0;
    at.netns = *netns;
    own = findOwned(&at);
    if (own && isFirstKnown(&own->first) && !ebpfMonFirstIsSame(&own->first, &th->first))
        own = findEarlier(&at, &th->first);
    if (!own || own->isChosen)
        return 0;
    return !isFirstKnown(&own->first) && th->isNew ? 0 : own;
}

/* Finds whom the thread serves. "client": struct client of the CA circuit; 0: there is none, and the last receive
 * tells. */
static __always_inline void readClient(struct ebpfMonWho *who, const struct thread *th,
                                       const struct ebpfMonTargetConf *conf, __u64 client)
{
    struct ebpfMonServed *known;
    struct ebpfMonOwned *own;

    who->isCA = 0;
    who->isShared = !client && th->received && !isCertain(th, conf);
    who->user[0] = who->host[0] = 0;
    bpf_get_current_comm(who->comm, sizeof(who->comm));
    who->peer = th->peer;
    if (client)
        readCircuit(who, conf, client);
    else if (who->peer.addr && !who->isShared && (known = bpf_map_lookup_elem(&served, &who->peer)))
        __builtin_memcpy(who->user, known->user, sizeof(who->user));
    who->owner.pid = 0;
    if (!who->peer.addr) /* no connection: a thread of the IOC itself */
        return;
    own = findOwner(&who->peer, th);
    if (own)
        who->owner = own->owner;
}

/*
 * Finds the client for which this thread processes the chain of "root". A put-callback that waited for its record goes
 * on in a thread for callbacks (dbNotify.c); the record's ppn leads back to the client that asked. "root" 0: the
 * thread's own client.
 */
static __always_inline void readChainClient(struct ebpfMonWho *who, const struct caller *c, const struct thread *th,
                                            __u64 root)
{
    struct notifyKey nk = { 0, c->tgid };
    struct notified *asked;

    if (!th->client && root && (nk.ppn = readPtr(root + c->conf->ppn))) {
        asked = bpf_map_lookup_elem(&notifies, &nk);
        if (asked && asked->made) {
            *who = asked->who;
            return;
        }
    }
    readClient(who, th, c->conf, th->client);
}

/* Sends the result of a put, and the value that the field has now. */
static __always_inline void sendResult(const struct caller *c, const struct inPut *in, __s64 status)
{
    struct ebpfMonResultEvent *ev = reserveEvent(c->conf->iocId, sizeof(*ev));
    __u64 n = in->size;

    if (!ev)
        return;
    fillHead(&ev->head, c, EBPFMON_EV_RESULT, bpf_ktime_get_ns());
    ev->id = in->id;
    ev->status = status;
    ev->pad = 0;
    ev->afterLen = 0;
    /* The compiler makes one test on a copy of two tests in one expression. Verifiers up to 6.12 then do not know that
     * n is bounded. */
    if (n > EBPFMON_AFTER_MAX)
        n = 0;
    barrier_var(n);
    if (n && !bpf_probe_read_user(ev->after, n, (void *)in->pfield))
        ev->afterLen = n;
    commitEvent(ev);
}

#endif
