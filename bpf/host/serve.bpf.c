// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * One thread of pvxs serves many clients, and receives from several of them before it serves the first one: libevent
 * puts off what is to be done with the bytes (BEV_OPT_DEFER_CALLBACKS). So the receive does not tell whose put it makes.
 * Here it begins to serve one of them, and serves it until it returns.
 */
#include "host/host.bpf.h"
#include "thread/client.bpf.h"

/* libevent 2.1 and 2.2, event2/bufferevent_struct.h, event2/event_struct.h: ev_read.ev_fd of a bufferevent; over TLS it is
 * the socket below */
#define EV_FD 72

/* NULL: this is no bufferevent with a socket. */
static __always_inline struct sock *findSocket(__u64 bev)
{
    struct file *file;
    int fd = -1;

    if (bpf_probe_read_user(&fd, sizeof(fd), (void *)(bev + EV_FD)) || fd < 0 || !(file = findOpenFile((__u32)fd)))
        return 0;
    return findFileSocket(file);
}

static __always_inline void seeServe(__u64 bev)
{
    struct ebpfMonPeer peer = {};
    struct ebpfMonServed *known;
    struct ebpfMonFirst first;
    struct thread *th;
    struct caller c;
    struct sock *sk;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = getThread(c.tid)))
        return;
    th->serving = 0;
    sk = findSocket(bev);
    if (!sk || !readPeer(sk, &peer) || !(known = bpf_map_lookup_elem(&served, &peer)))
        return;
    readFirst(sk, &first);
    if (!ebpfMonFirstIsSame(&known->first, &first)) /* this IOC has not received from it */
        return;
    th->peer = peer;
    th->first = first;
    th->copied = readCopied((struct tcp_sock *)sk);
    th->copiedFrom = known->begun; /* what was complete then is served */
    known->begun = th->copied;
    th->isNew = known->isNew;
    if (!th->received)
        th->received = 1;
    th->serving = c.conf->serving;
}

/* ConnBase::bevReadS(struct bufferevent *, void *) (pvxs, src/conn.cpp): serves all messages of one connection that have
 * come. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_serve, __u64 bev)
{
    RUN_TIMED(seeServe(bev));
}
