// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * What the kernel itself shows about processes: which programs start and end, and from which socket a thread of a
 * watched IOC read last. These programs cause no traps: they are at tracepoints, through which all processes go. So
 * each program returns as early as it can.
 */
#include "host/host.bpf.h"
#include "thread/client.bpf.h"

#define SOCK_DONE 1 /* enum sock_flags, net/sock.h */

/* ns; an older process is not one of a script or of a build, which start some hundred programs per second */
#define OLD_NS 10000000000ull

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

    KEEP_THREAD_STACK(ctx);
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

/* do_exit() has set the code before; all threads of a process that ends as a whole have the same (do_group_exit()). */
static __always_inline void sendExit(struct task_struct *task, __u32 iocId)
{
    struct ebpfMonExitEvent *e = reserveEvent(0, sizeof(*e));

    if (!e)
        return;
    fillHostHead(&e->head, EBPFMON_EV_EXIT, bpf_get_current_pid_tgid(), iocId);
    e->code = BPF_CORE_READ(task, exit_code);
    e->pad = 0;
    commitEvent(e);
}

/* sched_process_exit(task, …). The thread counts as ended before (do_exit(), kernel/exit.c). If two threads end at the
 * same time, both may find that none is left. */
SEC("raw_tp/sched_process_exit")
int ebpfmon_exit(__u64 *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx[0];
    struct caller c;
    int watched = findCaller(&c);

    KEEP_THREAD_STACK(ctx);
    /* The kernel uses thread ids again. A thread may outlive our interest in its process, so each thread that ends is
     * removed. */
    bpf_map_delete_elem(&threads, &c.tid);
    bpf_map_delete_elem(&groupThreads, &c.tid);
    if ((watched || bpf_map_lookup_elem(&found, &c.tgid)) && !BPF_CORE_READ(task, signal, live.counter))
        sendExit(task, watched ? c.conf->iocId : 0);
    return 0;
}

/* 0: this process is no target. A bit costs each receive on this host less than a lookup. */
static __always_inline int mayBeTarget(__u32 tgid)
{
    return targetBits[tgid / 64 % EBPFMON_TARGET_WORDS] >> (tgid % 64) & 1;
}

/* The sequence number behind the last byte that was read from this socket. A receive that has room for more bytes than
 * there are also takes the FIN, which has a number, too, and is no byte (tcp_recvmsg_locked(), net/ipv4/tcp.c). */
static __always_inline __u32 readCopied(struct tcp_sock *tp)
{
    unsigned long flags = BPF_CORE_READ((struct sock *)tp, __sk_common.skc_flags);
    __u32 copied = BPF_CORE_READ(tp, copied_seq);

    /* only a FIN sets SOCK_DONE (tcp_fin()), and nothing comes behind it */
    if (flags >> SOCK_DONE & 1 && copied == BPF_CORE_READ(tp, rcv_nxt))
        copied--;
    return copied;
}

/* The kernel counts what came since the first sequence numbers (tcp_rcv_nxt_update(), tcp_snd_una_update()). */
static __always_inline void readFirst(struct sock *sk, struct ebpfMonFirst *first)
{
    struct tcp_sock *tcp = (struct tcp_sock *)sk;

    first->seq[0] = BPF_CORE_READ(tcp, rcv_nxt) - (__u32)BPF_CORE_READ(tcp, bytes_received);
    first->seq[1] = BPF_CORE_READ(tcp, snd_una) - (__u32)BPF_CORE_READ(tcp, bytes_acked);
}

/* Anybody can send packets that look like a connection to an IOC. This is one of which it has got something. */
static __always_inline void noteServed(const struct ebpfMonPeer *peer, struct thread *th)
{
    struct ebpfMonServed *known = bpf_map_lookup_elem(&served, peer), new = { th->first, th->copied };

    if (known && ebpfMonFirstIsSame(&known->first, &th->first)) {
        known->upTo = th->copied;
        th->isNew = known->isNew;
        return;
    }
    th->isNew = new.isNew = th->copiedFrom == th->first.seq[0];
    bpf_map_update_elem(&served, peer, &new, BPF_ANY);
}

/* Notes the socket from which this thread of an IOC has just read. */
static __always_inline void noteSocket(const struct caller *c, struct sock *sk, int length)
{
    struct ebpfMonPeer peer = {};
    __u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
    struct thread *th;
    int isOther;

    if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
        return;
    th = getThread(c->tid);
    if (!th)
        return;
    if (family == AF_INET6 && readIPv6(sk, peer.addr6, peer.saddr6)) {
        peer.addr = ebpfMonShortAddress(peer.addr6);
        peer.saddr = ebpfMonShortAddress(peer.saddr6);
    } else {
        peer.addr = BPF_CORE_READ(sk, __sk_common.skc_daddr);
        peer.saddr = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
    }
    peer.port = BPF_CORE_READ(sk, __sk_common.skc_dport);
    peer.sport = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_num));
    if (!peer.sport) /* the client has reset the connection, and the thread reads what came before (tcp_set_state) */
        peer.sport = BPF_CORE_READ((struct inet_sock *)sk, inet_sport);
    isOther = !th->received || th->peer.port != peer.port ||
              !ebpfMonIsSameAddress(th->peer.addr, th->peer.addr6, peer.addr, peer.addr6);
    /* Device support or a routine of a record may ask a server of its own, between two messages of the circuit. A
     * thread of the CA server serves one circuit until it ends (camsgtask.c). */
    if (isOther && th->client && !isConnectionOf(c->conf, th->client, &peer))
        return;
    peer.netns = readOwnNetns(sk);
    if (!th->received)
        th->received = 1;
    else if (isOther)
        th->received = 2;
    th->peer = peer;
    /* the receive has updated it: up to here the thread has the bytes */
    th->copied = readCopied((struct tcp_sock *)sk);
    th->copiedFrom = th->copied - (__u32)length;
    readFirst(sk, &th->first);
    noteServed(&peer, th);
}

static __always_inline int noteReceive(struct sock *sk, int length)
{
    struct timing timing;
    struct caller c;

    if (!mayBeTarget(bpf_get_current_pid_tgid() >> 32) || !findCaller(&c) || length <= 0)
        return 0;
    beginTimingOnly(&timing);
    noteSocket(&c, sk, length);
    endTiming(&timing);
    return 0;
}

/* sock_recv_length(sk, ret, flags), since kernel 6.3 (6e6eda44b939) */
SEC("raw_tp/sock_recv_length")
int ebpfmon_recv(struct bpf_raw_tracepoint_args *ctx)
{
    KEEP_THREAD_STACK(ctx);
    return noteReceive((struct sock *)ctx->args[0], (int)ctx->args[1]);
}

/* Before 6.3: tcp_recvmsg(sk, …), which also serves IPv6 sockets. It lost an argument in 5.19 (ec095263a965), so we get
 * its result by a helper and not by the number of arguments. */
SEC("fexit/tcp_recvmsg")
int ebpfmon_recv_tcp(__u64 *ctx)
{
#ifdef EBPFMON_OLD_KERNEL /* bpf_get_func_ret() came with 5.17; in these kernels the result stands after six
                           * arguments */
    KEEP_THREAD_STACK(ctx);
    return noteReceive((struct sock *)ctx[0], (int)ctx[6]);
#else
    __u64 length = 0;

    KEEP_THREAD_STACK(ctx);
    return bpf_get_func_ret(ctx, &length) ? 0 : noteReceive((struct sock *)ctx[0], (int)length);
#endif
}
