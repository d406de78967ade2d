// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * What the kernel itself shows about processes: which programs start and end, and from which socket a thread of a
 * watched IOC read last. These programs cause no traps: they are at tracepoints, through which all processes go. So
 * each program returns as early as it can.
 */
#include "host/host.bpf.h"
#include "thread/client.bpf.h"

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
    struct signal_struct *signal = BPF_CORE_READ(task, signal);
    __u32 code = BPF_CORE_READ(task, exit_code);
    struct ebpfMonExitEvent *e;

    /* Before the event is reserved: kernel 6.1 does not see that "e" is not NULL if it is kept over these reads. */
    if (bpf_core_field_exists(signal->oom_mm) && BPF_CORE_READ(signal, oom_mm))
        code |= EBPFMON_EXIT_OOM;
    e = reserveEvent(0, sizeof(*e));
    if (!e)
        return;
    fillHostHead(&e->head, EBPFMON_EV_EXIT, bpf_get_current_pid_tgid(), iocId);
    e->code = code;
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

/* Anybody can send packets that look like a connection to an IOC. This is one of which it has got something: the bytes
 * from "from" to "upTo". *first gets its first numbers. Returns isNew of struct ebpfMonServed. */
static __always_inline __u32 noteServed(const struct ebpfMonPeer *peer, struct sock *sk, __u32 from, __u32 upTo,
                                        struct ebpfMonFirst *first)
{
    struct ebpfMonServed *known = bpf_map_lookup_elem(&served, peer), new = {};

    if (known && isFirst(sk, &known->first, first)) {
        known->upTo = upTo;
        return known->isNew;
    }
    readFirst(sk, &new.first);
    if (!isFirst(sk, &new.first, first))
        new.first = *first;
    new.upTo = upTo;
    new.isNew = from == first->seq[0];
    new.begun = from;
    bpf_map_update_elem(&served, peer, &new, BPF_ANY);
    return new.isNew;
}

/* Notes the socket from which this thread of an IOC has just read. */
static __always_inline void noteSocket(const struct caller *c, struct sock *sk, int length)
{
    struct ebpfMonPeer peer = {};
    struct ebpfMonFirst first;
    __u32 upTo, isNew;
    struct thread *th;
    int isOther;

    if (!readPeer(sk, &peer) || !(th = getThread(c->tid)))
        return;
    isOther = !th->received || th->peer.port != peer.port ||
              !ebpfMonIsSameAddress(th->peer.addr, th->peer.addr6, peer.addr, peer.addr6);
    /* Device support or a routine of a record may ask a server of its own, between two messages of the circuit. A
     * thread of the CA server serves one circuit until it ends (camsgtask.c). */
    if (isOther && th->client && !isConnectionOf(c->conf, th->client, &peer))
        return;
    upTo = readCopied((struct tcp_sock *)sk); /* the receive has updated it: up to here the thread has the bytes */
    isNew = noteServed(&peer, sk, upTo - (__u32)length, upTo, &first);
    if (!th->received)
        th->received = 1;
    else if (isOther)
        th->received = 2;
    if (isServing(th, c->conf))
        return;
    th->peer = peer;
    th->first = first;
    th->copied = upTo;
    th->copiedFrom = upTo - (__u32)length;
    th->isNew = isNew;
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
