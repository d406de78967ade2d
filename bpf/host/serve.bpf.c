// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * One thread of pvxs serves many clients, and receives from several of them before it serves the first one: libevent
 * puts off what is to be done with the bytes (BEV_OPT_DEFER_CALLBACKS). So the receive does not tell whose put it
 * makes. Here it begins to serve one of them, and serves it until it returns.
 *
 * It also notes the name that access security has for this client, and who has vouched for it.
 */
#include "host/host.bpf.h"
#include "thread/client.bpf.h"

/* Members of a bufferevent, in bytes (event2/bufferevent_struct.h, event2/event_struct.h of libevent). */
#define EV_FD    72  /* 2.1 and 2.2: ev_read.ev_fd */
#define CBARG_21 344 /* 2.1: cbarg */
#define CBARG_22 328 /* 2.2 */
#define PRIVATE  560 /* among the words from here on is the bufferevent below TLS (in 2.1.12 it is at 632) */

/* The same of a ServerConn (src/serverconn.h) and its PeerCredentials (src/pvxs/netcommon.h) of branch tls of pvxs,
 * with libstdc++. */
#define CREDENTIALS 128 /* among the words from here on is the pointer to the credentials (2026: at 216) */
#define SHARED      16  /* the counters of a std::shared_ptr */
#define METHOD      64
#define AUTHORITY   96
#define ACCOUNT     128

/* The open file of a bufferevent. NULL: it has none of its own. */
static __always_inline struct file *findEventFile(__u64 bev)
{
    int fd = -1;

    return bpf_probe_read_user(&fd, sizeof(fd), (void *)(bev + EV_FD)) || fd < 0 ? 0 : findOpenFile((__u32)fd);
}

/* Over TLS a bufferevent is the filter of another one, whose callbacks get the filter as their argument. 0: it is
 * none. */
static __always_inline __u64 findUnderlying(struct thread *th, __u64 bev)
{
    __u64 arg[3];

    if (bpf_probe_read_user(th->stack, sizeof(th->stack), (void *)(bev + PRIVATE)))
        return 0;
    for (int i = 0; i < EBPFMON_PASS_STACK; i++) {
        __u64 other = th->stack[i];

        if (other > 4096 && !bpf_probe_read_user(arg, sizeof(arg), (void *)(other + CBARG_22)) &&
            (arg[0] == bev || arg[(CBARG_21 - CBARG_22) / 8] == bev))
            return other;
    }
    return 0;
}

/* NULL: this is no bufferevent with a socket. */
static __always_inline struct sock *findSocket(struct thread *th, __u64 bev)
{
    struct file *file = findEventFile(bev);
    __u64 underlying;

    if (!file && (underlying = findUnderlying(th, bev)))
        file = findEventFile(underlying);
    return file ? findFileSocket(file) : 0;
}

static __always_inline void seeServe(__u64 bev, __u64 conn)
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
    sk = findSocket(th, bev);
    if (!sk || !readPeer(sk, &peer) || !(known = bpf_map_lookup_elem(&served, &peer)) ||
        !isFirst(sk, &known->first, &first))
        return; /* this IOC has not received from it */
    th->peer = peer;
    th->first = first;
    th->copied = readCopied((struct tcp_sock *)sk);
    th->copiedFrom = known->begun; /* what was complete then is served */
    known->begun = th->copied;
    th->isNew = known->isNew;
    if (!th->received)
        th->received = 1;
    th->serving = c.conf->serving;
    th->conn = conn;
}

/* ConnBase::bevReadS(struct bufferevent *, void *) (pvxs, src/conn.cpp): serves all messages of one connection that
 * have come. The second argument is the connection: a ServerConn. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_serve, __u64 bev, __u64 conn)
{
    RUN_TIMED(seeServe(bev, conn));
}

/* "role/": a group of the user, which is asked for after him (pvxs, ioc/credentials.cpp). */
static __always_inline int isRole(const char *name)
{
    return name[0] == 'r' && name[1] == 'o' && name[2] == 'l' && name[3] == 'e' && name[4] == '/';
}

static __always_inline int isCertificate(const char *name)
{
    return name[0] == 'x' && name[1] == '5' && name[2] == '0' && name[3] == '9' && name[4] == '/';
}

/* A std::string of libstdc++. */
struct stdString {
    __u64 at, length;
    char  here[8];
};

/* The ClientCredentials of a ServerConn; 0: they are not found. std::shared_ptr has the object, and its counters, which
 * std::make_shared puts before it. */
static __always_inline __u64 findCredentials(struct thread *th)
{
    struct stdString method;

    if (bpf_probe_read_user(th->stack, sizeof(th->stack), (void *)(th->conn + CREDENTIALS)))
        return 0;
    for (int i = 0; i + 1 < EBPFMON_PASS_STACK; i++) {
        __u64 at = th->stack[i];

        if (at > 4096 && at == th->stack[i + 1] + SHARED &&
            !bpf_probe_read_user(&method, sizeof(method), (void *)(at + METHOD)) && method.length == 4 &&
            method.here[0] == 'x' && method.here[1] == '5' && method.here[2] == '0' && method.here[3] == '9')
            return at;
    }
    return 0;
}

/* The server has proved by a certificate who its client is. */
static __always_inline void noteCertificate(struct thread *th, const struct ebpfMonTargetConf *conf)
{
    struct ebpfMonCertificate certificate = {};
    __u64 at = isServing(th, conf) ? findCredentials(th) : 0;

    if (!at || bpf_probe_read_user_str(certificate.account, sizeof(certificate.account),
                                       (void *)readPtr(at + ACCOUNT)) <= 0) {
        bpf_map_delete_elem(&certificates, &th->peer); /* it may be of an earlier connection */
        return;
    }
    bpf_probe_read_user_str(certificate.authority, sizeof(certificate.authority), (void *)readPtr(at + AUTHORITY));
    bpf_map_update_elem(&certificates, &th->peer, &certificate, BPF_ANY);
}

static __always_inline void seeClaim(__u64 user)
{
    struct ebpfMonServed *known;
    char name[EBPFMON_USER_MAX] = "";
    struct thread *th;
    struct caller c;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = bpf_map_lookup_elem(&threads, &c.tid)) || th->client ||
        !isCertain(th, c.conf) || !(known = bpf_map_lookup_elem(&served, &th->peer)))
        return;
    if (bpf_probe_read_user_str(name, sizeof(name), (void *)user) <= 0 || isRole(name))
        return;
    __builtin_memcpy(known->user, name, sizeof(known->user));
    if (isCertificate(name))
        noteCertificate(th, c.conf);
}

/* asAddClient(ASCLIENTPVT *, ASMEMBERPVT, int level, const char *user, char *host) (asLib.h): both QSRVs call it for a
 * channel, before its first put at the latest. The user is as the client claims, or of its certificate ("x509/NAME").
 * The CA server calls it, too: there the circuit tells the same. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_claim, __u64 asClient, __u64 member, __u64 level, __u64 user)
{
    RUN_TIMED(seeClaim(user));
}
