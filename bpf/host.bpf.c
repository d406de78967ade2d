// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * What the kernel itself shows about processes and connections: which programs start and end, from which socket a
 * thread of a watched IOC read last, and which process opened a local connection. These programs cause no traps: they
 * are at tracepoints, through which all processes go. So each program returns as early as it can.
 */
#include "probe.bpf.h"

#define TCP_ESTABLISHED 1
#define TCP_SYN_SENT    2
#define TCP_CLOSE       7
#define TCP_LISTEN      10
#define IPPROTO_TCP     6

/* ns; an older process is not one of a script or of a build, which start some hundred programs per second */
#define OLD_NS 10000000000ull

static __always_inline void fillHostHead(struct ebpfMonHead *h, __u32 kind, __u64 id, __u32 iocId)
{
    h->kind = kind;
    h->tgid = id >> 32;
    h->tid = (__u32)id;
    h->iocId = iocId;
    h->ktime = bpf_ktime_get_ns();
}

/* Sends an event that is only a head. "iocId" 0: it is of no watched IOC. */
static __always_inline void sendHead(__u32 kind, __u64 id, __u32 iocId)
{
    struct ebpfMonHead *h = reserveEvent(0, sizeof(*h));

    if (!h)
        return;
    fillHostHead(h, kind, id, iocId);
    commitEvent(h);
}

/* sched_process_exec(task, old_pid, bprm). For a script, bprm->file is its interpreter (exec_binprm(), fs/exec.c). */
SEC("raw_tp/sched_process_exec")
int ebpfmon_exec(__u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct linux_binprm *bprm = (struct linux_binprm *)ctx[2];
    __u64 id = bpf_get_current_pid_tgid();
    struct ebpfMonProgram program = {
        .inode = BPF_CORE_READ(bprm, file, f_inode, i_ino),
        .device = BPF_CORE_READ(bprm, file, f_inode, i_sb, s_dev),
    };
    struct ebpfMonExecEvent *e;
    __u32 tgid = id >> 32;

    if (bpf_map_lookup_elem(&plainPrograms, &program) && !bpf_map_lookup_elem(&found, &tgid) &&
        bpf_ktime_get_ns() - BPF_CORE_READ(task, start_time) < OLD_NS)
        return 0;
    e = reserveEvent(0, sizeof(*e));
    if (!e)
        return 0;
    fillHostHead(&e->head, EBPFMON_EV_EXEC, id, 0);
    e->program = program;
    commitEvent(e);
    return 0;
}

/* sched_process_exit(task, …). The thread counts as ended before (do_exit(), kernel/exit.c). If two threads end at the
 * same time, both may find that none is left. */
SEC("raw_tp/sched_process_exit")
int ebpfmon_exit(__u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct caller c;
    int watched = findCaller(&c);

    /* The kernel uses thread ids again. A thread may outlive our interest in its process, so each thread that ends is
     * removed. */
    bpf_map_delete_elem(&threads, &c.tid);
    bpf_map_delete_elem(&groupThreads, &c.tid);
    bpf_map_delete_elem(&quick, &c.tid);
    if ((watched || bpf_map_lookup_elem(&found, &c.tgid)) && !BPF_CORE_READ(task, signal, live.counter))
        sendHead(EBPFMON_EV_EXIT, bpf_get_current_pid_tgid(), watched ? c.conf->iocId : 0);
    return 0;
}

static __always_inline __u32 readNetns(struct sock *sk, __u32 addr)
{
    if ((addr & 0xff) != 127) /* network byte order */
        return 0;
    return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

/* Notes the socket from which this thread has just read. */
static __always_inline int noteReceive(struct sock *sk, int length)
{
    struct ebpfMonPeer peer = {};
    struct thread *th;
    struct caller c;
    __u16 family;

    if (!findCaller(&c) || length <= 0)
        return 0;
    family = BPF_CORE_READ(sk, __sk_common.skc_family);
    if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
        return 0;
    th = getThread(c.tid);
    if (!th)
        return 0;
    /* an AF_INET6 socket with a v4-mapped address has the IPv4 addresses here, another one has 0 */
    peer.addr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
    peer.saddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    peer.port = BPF_CORE_READ(sk, __sk_common.skc_dport);
    peer.sport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_num));
    peer.netns = readNetns(sk, peer.addr);
    if (!th->received)
        th->received = 1;
    else if (th->peer.addr != peer.addr || th->peer.port != peer.port)
        th->received = 2;
    th->peer = peer;
    /* the receive has updated it: up to here the thread has the bytes */
    th->copied = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
    th->copiedFrom = th->copied - (__u32)length;
    return 0;
}

/* sock_recv_length(sk, ret, flags), since kernel 6.3 (6e6eda44b939) */
SEC("raw_tp/sock_recv_length")
int ebpfmon_recv(struct bpf_raw_tracepoint_args *ctx)
{
    return noteReceive((struct sock *)ctx->args[0], (int)ctx->args[1]);
}

/* Before 6.3: tcp_recvmsg(sk, …), which also serves IPv6 sockets. It lost an argument in 5.19 (ec095263a965), so we get
 * its result by a helper and not by the number of arguments. */
SEC("fexit/tcp_recvmsg")
int ebpfmon_recv_tcp(__u64 *ctx)
{
#ifdef EBPFMON_OLD_KERNEL /* bpf_get_func_ret() came with 5.17; in these kernels the result stands after six
                           * arguments */
    return noteReceive((struct sock *)ctx[0], (int)ctx[6]);
#else
    __u64 length = 0;

    return bpf_get_func_ret(ctx, &length) ? 0 : noteReceive((struct sock *)ctx[0], (int)length);
#endif
}

/* listen() sets the state while its caller is the current thread (inet_csk_listen_start(), net/ipv4). */
static __always_inline void noteListening(struct sock *sk)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32;

    if (BPF_CORE_READ(sk, sk_protocol) == IPPROTO_TCP && bpf_map_lookup_elem(&found, &tgid))
        sendHead(EBPFMON_EV_LISTEN, id, 0);
}

/* Which connection the socket of a client has. "port": its own one, in network byte order. */
static __always_inline void readConnection(struct sock *sk, __u16 port, struct ebpfMonPeer *peer)
{
    peer->addr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    peer->saddr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
    peer->port = port;
    peer->sport = BPF_CORE_READ(sk, __sk_common.skc_dport);
    peer->netns = readNetns(sk, peer->addr);
}

/* The socket is closed. skc_num is 0 already if the kernel had chosen the port (tcp_set_state). */
static __always_inline void endConnection(struct sock *sk)
{
    struct ebpfMonPeer peer = {};
    struct ebpfMonOwner own, *seen;

    readConnection(sk, BPF_CORE_READ((struct inet_sock *)sk, inet_sport), &peer);
    seen = bpf_map_lookup_elem(&owners, &peer);
    if (!seen)
        return;
    own = *seen;
    bpf_map_update_elem(&endedOwners, &peer, &own, BPF_ANY);
    bpf_map_delete_elem(&owners, &peer);
}

/* inet_sock_set_state(sk, oldstate, newstate). connect() sets SYN_SENT while its caller is the current thread, but the
 * kernel chooses the local port after that (tcp_v4_connect). At ESTABLISHED the port is known, but the current thread
 * may be any. */
SEC("raw_tp/inet_sock_set_state")
int ebpfmon_connect(struct bpf_raw_tracepoint_args *ctx)
{
    struct sock *sk = (struct sock *)ctx->args[0];
    int newstate = ctx->args[2];
    __u64 key = (__u64)sk, id;
    struct ebpfMonOwner own = {}, *seen;
    struct ebpfMonPeer peer = {};
    struct task_struct *leader;

    if (newstate == TCP_SYN_SENT) {
        if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
            return 0;
        id = bpf_get_current_pid_tgid();
        own.pid = id >> 32;
        own.uid = (__u32)bpf_get_current_uid_gid();
        leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
        bpf_probe_read_kernel_str(own.comm, sizeof(own.comm), BPF_CORE_READ(leader, comm));
        bpf_map_update_elem(&connecting, &key, &own, BPF_ANY);
        return 0;
    }
    if (newstate == TCP_LISTEN)
        noteListening(sk);
    if (newstate == TCP_CLOSE) {
        bpf_map_delete_elem(&connecting, &key);
        endConnection(sk);
        return 0;
    }
    if (newstate != TCP_ESTABLISHED)
        return 0;
    seen = bpf_map_lookup_elem(&connecting, &key);
    if (!seen)
        return 0;
    own = *seen;
    bpf_map_delete_elem(&connecting, &key);
    readConnection(sk, __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_num)), &peer);
    if (bpf_map_update_elem(&owners, &peer, &own, BPF_ANY))
        bpf_map_update_elem(&endedOwners, &peer, &own, BPF_ANY);
    return 0;
}
