// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Which process opened a local connection, and which found process begins to listen. Each local connection goes
 * through this tracepoint eight to ten times, by the states of both ends, so what most connections need is in arrays:
 * an element of an LRU table costs ten times as much as the place of an array.
 */
#include "host/host.bpf.h"
#include "thread/client.bpf.h"

#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT    2
#define TCP_SYN_RECV    3
#define TCP_CLOSE       7
#define TCP_LISTEN      10

/* listen() sets the state while its caller is the current thread (inet_csk_listen_start(), net/ipv4). */
static __always_inline void noteListening(struct sock *sk)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32;

    if (sk->sk_protocol == IPPROTO_TCP && bpf_map_lookup_elem(&found, &tgid))
        sendHead(EBPFMON_EV_LISTEN, id, 0);
}

/* The address of the socket, as a number: the verifier allows no arithmetic with a pointer to a struct. */
static __always_inline __u64 getAddress(const __u64 *ctx)
{
    __u64 sk = 0;

    bpf_probe_read_kernel(&sk, sizeof(sk), ctx);
    return sk;
}

static __always_inline struct connectPlace *findConnectPlace(__u64 sk)
{
    __u32 at = (sk * 0x9e3779b97f4a7c15ull) >> (64 - CONNECT_PLACES_LOG); /* 2^64 / golden ratio (Knuth) */

    return bpf_map_lookup_elem(&connectPlaces, &at);
}

/* Nonzero: the place is this socket's. One that has its address already is of a socket that has gone. */
static __always_inline int claimPlace(struct connectPlace *place, __u64 sk)
{
#ifdef EBPFMON_OLD_KERNEL
    return 0;
#else
    return place->sk == sk || !__sync_val_compare_and_swap(&place->sk, 0, sk);
#endif
}

/* Frees the place. Only then may another socket claim it. */
static __always_inline void freePlace(struct connectPlace *place, __u64 sk)
{
#ifndef EBPFMON_OLD_KERNEL /* there no place is ever claimed */
    __sync_val_compare_and_swap(&place->sk, sk, 0);
#endif
}

#define CHOSEN (1u << 31) /* in the pid of "connecting": no pid has so many bits */

/* The kernel chooses the first sequence number later than this, unless the socket has one: from TCP_REPAIR, or from an
 * earlier try (tcp_v4_connect). */
static __always_inline __u32 hasNumber(struct sock *sk)
{
    return BPF_CORE_READ((struct tcp_sock *)sk, write_seq) ? CHOSEN : 0;
}

static __always_inline void beginConnect(struct sock *socket, __u64 sk)
{
    struct task_struct *leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
    struct ebpfMonOwner own = {
        .pid = bpf_get_current_pid_tgid() >> 32 | hasNumber(socket),
        .uid = (__u32)bpf_get_current_uid_gid(),
        .start = BPF_CORE_READ(leader, start_boottime) / EBPFMON_TICK_NS,
    };
    struct connectPlace *place = findConnectPlace(sk);

    bpf_probe_read_kernel_str(own.comm, sizeof(own.comm), BPF_CORE_READ(leader, comm));
    if (place && claimPlace(place, sk))
        place->owner = own;
    else
        bpf_map_update_elem(&connecting, &sk, &own, BPF_ANY);
}

/* Who connects this socket. 0; -1: not seen. Later calls do not find it. */
static __always_inline int endConnect(__u64 sk, struct ebpfMonOwner *own)
{
    struct connectPlace *place = findConnectPlace(sk);
    struct ebpfMonOwner *seen;

    if (place && place->sk == sk) {
        *own = place->owner;
        freePlace(place, sk);
        return 0;
    }
    seen = bpf_map_lookup_elem(&connecting, &sk);
    if (!seen)
        return -1;
    *own = *seen;
    bpf_map_delete_elem(&connecting, &sk);
    return 0;
}

/* Which connection the socket of a client has. "port": its own one, in network byte order. */
static __always_inline void readConnection(struct sock *sk, __u16 port, struct ebpfMonPeer *peer)
{
    if (sk->__sk_common.skc_family == AF_INET6 && readIPv6(sk, peer->saddr6, peer->addr6)) {
        peer->addr = ebpfMonShortAddress(peer->addr6);
        peer->saddr = ebpfMonShortAddress(peer->saddr6);
    } else {
        peer->addr = sk->__sk_common.skc_rcv_saddr;
        peer->saddr = sk->__sk_common.skc_daddr;
    }
    peer->port = port;
    peer->sport = sk->__sk_common.skc_dport;
    peer->netns = readOwnNetns(sk);
}

/* Notes the namespace of a client's socket. Somebody may have made the same connection in a namespace of his own, so
 * nothing follows from this alone: findOwner (client.bpf.h). */
static __always_inline void noteNetns(const struct ebpfMonPeer *peer)
{
    struct ebpfMonPeer key = *peer, other = *peer;
    __u32 netns = peer->netns, *known;
    struct ebpfMonOwned *own;

    key.netns = 0;
    known = bpf_map_lookup_elem(&clientNetns, &key);
    if (known && *known != netns) {
        other.netns = *known;
        own = bpf_map_lookup_elem(&owners, &other);
        if (own && !own->ended)
            return;
    }
    if (!known || *known != netns)
        bpf_map_update_elem(&clientNetns, &key, &netns, BPF_ANY);
}

static __always_inline void forgetNetns(const struct ebpfMonPeer *peer)
{
    struct ebpfMonPeer key = *peer;
    __u32 *known;

    key.netns = 0;
    known = bpf_map_lookup_elem(&clientNetns, &key);
    if (known && *known == peer->netns)
        bpf_map_delete_elem(&clientNetns, &key);
}

#ifndef EBPFMON_OLD_KERNEL
/* In which share this user is: one that opens and closes many connections takes places of his share only. */
static __always_inline __u32 findShare(__u32 uid)
{
    return uid ? 1 + uid % (EBPFMON_ENDED_SHARES - 1) : 0;
}
#endif

/* Keeps the owner of a connection that has ended, until EBPFMON_ENDED_SHARE others of his share have ended. */
static __always_inline void keepEnded(const struct ebpfMonPeer *peer, struct ebpfMonOwned *seen)
{
#ifdef EBPFMON_OLD_KERNEL
    struct ebpfMonOwned own = *seen;

    bpf_map_update_elem(&endedOwners, peer, &own, BPF_ANY);
    bpf_map_delete_elem(&owners, peer);
    forgetNetns(peer);
#else
    __u32 share = findShare(seen->owner.uid), ended, at;
    struct ebpfMonPeer *place, before;

    barrier_var(share); /* else the compiler knows its bound, and does not tell the verifier */
    share &= EBPFMON_ENDED_SHARES - 1;
    ended = __sync_fetch_and_add(&endedOwnersCount[share], 1) + 1;
    at = share * EBPFMON_ENDED_SHARE + ended % EBPFMON_ENDED_SHARE;
    place = bpf_map_lookup_elem(&endedPlaces, &at);
    if (!place)
        return;
    before = *place;
    *place = *peer;
    seen->ended = ended;
    seen = bpf_map_lookup_elem(&owners, &before);
    /* else a new connection has the same addresses and ports */
    if (seen && seen->ended == ended - EBPFMON_ENDED_SHARE) {
        bpf_map_delete_elem(&owners, &before);
        forgetNetns(&before);
    }
#endif
}

/* A connection with these ends begins, or ends: another one is forgotten now. */
static __always_inline void keepEarlier(const struct ebpfMonPeer *peer, const struct ebpfMonOwned *before,
                                        const struct ebpfMonFirst *first)
{
    struct ebpfMonEarlierKey key = { .peer = *peer, .first = before->first };

    if (isFirstKnown(&key.first) && !ebpfMonFirstIsSame(&key.first, first))
        bpf_map_update_elem(&earlier, &key, before, BPF_ANY);
}

#define ACCEPTED_MAX     4096
#define ENDED_SERVED_MAX 4096

/* Connections of servers that are open, from clients of which "owners" does not tell. Packets that look like one of
 * these with other numbers are forged. Not of loopback. */
TABLE(accepted, HASH, ACCEPTED_MAX, struct ebpfMonPeer, struct ebpfMonFirst);

/* Nonzero: "accepted" had no room. */
volatile __u32 acceptedIsFull;

/* What servers had received of connections that have ended, from clients that are not known here. Packets of a
 * connection that is not here, and has no socket, are forged. */
TABLE(endedServed, LRU_HASH, ENDED_SERVED_MAX, struct ebpfMonPeer, struct ebpfMonServed);

/* The connection of a server begins. */
static __always_inline void noteAccepted(struct sock *sk)
{
    struct ebpfMonPeer peer = {};
    struct ebpfMonFirst first;

    if (!readPeer(sk, &peer) || ebpfMonIsLoopback(peer.addr, peer.addr6) || findOwned(&peer))
        return;
    readFirst(sk, &first);
    if (bpf_map_update_elem(&accepted, &peer, &first, BPF_ANY))
        acceptedIsFull = 1;
}

/* The socket of a server is closed. If its client is known, that one's entry keeps what the server has received: most
 * connections of a host are on loopback. */
static __always_inline void keepServed(struct sock *sk)
{
    struct tcp_sock *tcp = (struct tcp_sock *)sk;
    struct ebpfMonServed ended = {}, *before;
    struct ebpfMonPeer peer = {};
    struct ebpfMonOwned *own;

    if (!readPeer(sk, &peer))
        return;
    ended.upTo = BPF_CORE_READ(tcp, rcv_nxt);
    ended.endedAt = bpf_ktime_get_ns();
    own = findOwned(&peer);
    if (own) {
        own->upTo = ended.upTo;
        if (!own->endedAt)
            own->endedAt = ended.endedAt;
        return;
    }
    if (ebpfMonIsLoopback(peer.addr, peer.addr6))
        return;
    if (BPF_CORE_READ(tcp, bytes_received)) {
        readFirst(sk, &ended.first);
        before = bpf_map_lookup_elem(&endedServed, &peer);
        if (before) {
            struct ebpfMonOwned nobody = { .first = before->first, .upTo = before->upTo, .endedAt = before->endedAt };

            keepEarlier(&peer, &nobody, &ended.first);
        }
        bpf_map_update_elem(&endedServed, &peer, &ended, BPF_ANY);
    }
    /* Last: who looks into "accepted" first finds the connection there or in "endedServed", also if this program is
     * preempted here. While it is in the former and its socket is gone, it is looked for again
     * (ebpfMonConnectionSocketsFind). */
    bpf_map_delete_elem(&accepted, &peer);
}

/* The socket is closed. skc_num is 0 already if the kernel had chosen the port (tcp_set_state). */
static __always_inline void endConnection(struct sock *sk)
{
    struct ebpfMonPeer peer = {};
    struct ebpfMonOwned *seen;

    readConnection(sk, BPF_CORE_READ((struct inet_sock *)sk, inet_sport), &peer);
    seen = bpf_map_lookup_elem(&owners, &peer);
    if (!seen) {
        keepServed(sk);
    } else if (!seen->ended) {
        if (!seen->endedAt) {
            seen->upTo = BPF_CORE_READ((struct tcp_sock *)sk, snd_una);
            seen->endedAt = bpf_ktime_get_ns();
        }
        keepEnded(&peer, seen);
    }
}

/* The owner of a connection whose ports are known now. Both ends have the first sequence numbers of both
 * (tcp_rcv_synsent_state_process). What is acknowledged are the SYN, and the bytes in it (TCP_FASTOPEN in tcp(7)). */
static __always_inline void beginConnection(struct sock *sk, __u64 address)
{
    struct ebpfMonOwned own = {}, *before;
    struct tcp_sock *tcp = (struct tcp_sock *)sk;
    struct ebpfMonPeer peer = {};

    if (endConnect(address, &own.owner))
        return;
    own.isChosen = own.owner.pid & CHOSEN;
    own.owner.pid &= ~CHOSEN;
    readConnection(sk, __builtin_bswap16(sk->__sk_common.skc_num), &peer);
    own.first.seq[0] = BPF_CORE_READ(tcp, snd_una) - (__u32)BPF_CORE_READ(tcp, bytes_acked) + 1;
    own.first.seq[1] = BPF_CORE_READ(tcp, rcv_nxt);
    before = findOwned(&peer);
    if (before)
        keepEarlier(&peer, before, &own.first);
    if (bpf_map_update_elem(&owners, &peer, &own, BPF_ANY))
        bpf_map_update_elem(&endedOwners, &peer, &own, BPF_ANY);
    if (!ebpfMonIsLoopback(peer.addr, peer.addr6))
        noteNetns(&peer);
}

/* inet_sock_set_state(sk, oldstate, newstate). connect() sets SYN_SENT while its caller is the current thread, but the
 * kernel chooses the local port after that (tcp_v4_connect). When the socket leaves that state, the port is known, but
 * the current thread may be any. (It becomes SYN_RECV if both ends connect at the same time.) */
SEC("tp_btf/inet_sock_set_state")
int ebpfmon_connect(__u64 *ctx)
{
    struct sock *sk = (struct sock *)ctx[0];
    int oldstate = (int)ctx[1], newstate = (int)ctx[2];
    struct ebpfMonOwner nobody;

    KEEP_THREAD_STACK(ctx);
    if (newstate == TCP_SYN_SENT) {
        if (sk->sk_protocol == IPPROTO_TCP)
            beginConnect(sk, getAddress(ctx));
    } else if (newstate == TCP_LISTEN) {
        noteListening(sk);
    } else if (oldstate == TCP_SYN_SENT) {
        if (newstate == TCP_CLOSE)
            endConnect(getAddress(ctx), &nobody);
        else
            beginConnection(sk, getAddress(ctx));
    } else if (oldstate == TCP_SYN_RECV && newstate == TCP_ESTABLISHED) {
        noteAccepted(sk);
    } else if (newstate == TCP_CLOSE) {
        endConnection(sk);
    }
    return 0;
}
