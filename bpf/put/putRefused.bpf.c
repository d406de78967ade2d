// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* Sees puts of CA clients that are refused before they reach the database, and the clients of put-callbacks. */
#include "put/putEvent.bpf.h"

/* Reads the value of the CA message that the thread serves now: caHdr (caProto.h), in network byte order. 0: the
 * message is no write. */
static __always_inline int readMessage(struct thread *th, const struct ebpfMonTargetConf *conf, __u64 client)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    __u64 buf = readPtr(client + conf->clRecvBuf);
    __u32 stk = 0, len;
    struct {
        __u16 cmd, size, type, count;
        __u32 cid, avail;
        __u32 bigSize, bigCount;
    } h = {};

    bpf_probe_read_user(&stk, sizeof(stk), (void *)(client + conf->clRecvStk));
    if (bpf_probe_read_user(&h, sizeof(h), (void *)(buf + stk)))
        return 0;
    if (h.cmd != __builtin_bswap16(EBPFMON_CA_WRITE) && h.cmd != __builtin_bswap16(EBPFMON_CA_WRITE_NOTIFY))
        return 0;
    ev->dbrType = __builtin_bswap16(h.type);
    buf += stk + 16;
    if (h.size == 0xffff) {
        len = __builtin_bswap32(h.bigSize);
        ev->nRequest = __builtin_bswap32(h.bigCount);
        buf += 8;
    } else {
        len = __builtin_bswap16(h.size);
        ev->nRequest = __builtin_bswap16(h.count);
    }
    ev->newLen = readData(th, ev->oldLen, buf, len);
    return 1;
}

static __always_inline void sendRefused(const struct caller *c, struct thread *th, const struct addr *a, __u64 addrAt,
                                        __u64 client, __u8 kind)
{
    fillPutEvent(c, th, a, addrAt, kind);
    readOldScalar(th, a);
    if (!readMessage(th, c->conf, client)) {
        th->putId--; /* this is no put: the client has just connected, or asked for something else */
        return;
    }
    th->ev.network = 1;
    sendPut(th, BPF_RB_NO_WAKEUP);
}

/* Nonzero: access security allows the client to write, and the field can be written. */
static __always_inline int mayWrite(const struct ebpfMonTargetConf *conf, const struct addr *a, __u64 pciu)
{
    int active = 0, access = EBPFMON_AS_WRITE;

    if (a->special == EBPFMON_SPC_NOMOD)
        return 0;
    if (conf->asActive)
        bpf_probe_read_user(&active, sizeof(active), (void *)conf->asActive);
    if (!active)
        return 1;
    bpf_probe_read_user(&access, sizeof(access), (void *)(readPtr(pciu + conf->ciuAs) + conf->asAccess));
    return access >= EBPFMON_AS_WRITE;
}

/* Nonzero: this thread serves the circuit "client". A thread of the CA server has one circuit until the thread ends
 * (camsgtask.c). The first channel that the thread creates or writes to belongs to this circuit. If rights change, a
 * thread may also ask for channels of other circuits (casAccessRightsCB). So, if we know from which circuit the thread
 * has read, "client" must be the same. */
static __always_inline int servesCircuit(const struct thread *th, const struct ebpfMonTargetConf *conf, __u64 client)
{
    static const char name[] = "CAS-client";
    char comm[EBPFMON_COMM_MAX] = {};

    bpf_get_current_comm(comm, sizeof(comm));
#pragma unroll
    for (int i = 0; i < (int)sizeof(name); i++)
        if (conf->hasThreadNames && comm[i] != name[i])
            return 0;
    return (!th->peer.addr && conf->hasThreadNames) || isConnectionOf(conf, client, &th->peer);
}

static __always_inline void seeCheckPut(__u64 pciu)
{
    struct thread *th;
    struct caller c;
    struct addr a;
    __u64 client, addrAt;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return;
    th = getThread(c.tid);
    if (!th)
        return;
    client = readPtr(pciu + c.conf->ciuClient);
    if (!th->client && servesCircuit(th, c.conf, client))
        th->client = client;
    addrAt = findChannelAddr(c.conf, pciu);
    if (readAddr(c.conf, &a, addrAt) || mayWrite(c.conf, &a, pciu))
        return;
    /* When access rights change, another thread asks this for each channel (casAccessRightsCB). Then the buffer of the
     * circuit still has a message that was served long ago. */
    if (th->client == client)
        sendRefused(&c, th, &a, addrAt, client, EBPFMON_PUT_DENIED);
}

/* rsrvCheckPut(struct channel_in_use *): we find its answer before it does. It is also called when a channel is
 * created, to tell the client its rights; then the thread serves no write. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_checkput, __u64 pciu)
{
    RUN_TIMED(seeCheckPut(pciu));
}

static __always_inline void seeNotify(__u64 ppn)
{
    struct notifyKey nk = { ppn, 0 };
    struct thread *th;
    struct caller c;
    struct addr a;
    __u64 addrAt;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = getThread(c.tid)))
        return;
    nk.tgid = c.tgid;
    readClient(&th->notified.who, th, c.conf, th->client);
    th->notified.seqKind = readSeq(th, c.conf, &th->notified.who.peer, &th->notified.seq, &th->notified.seqFrom);
    th->notified.made = 0;
    bpf_map_update_elem(&notifies, &nk, &th->notified, BPF_ANY);
    if (!th->client)
        return;
    addrAt = findAddr(c.conf, ppn + c.conf->ppnChan);
    if (!readAddr(c.conf, &a, addrAt) && isDisabled(c.conf, &a))
        sendRefused(&c, th, &a, addrAt, th->client, EBPFMON_PUT_DISABLED);
}

/* dbProcessNotify(processNotify *): notes who asks, because the record may be busy and the put come later. A
 * put-callback to a record with DISP set is refused here (dbNotify.c). */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_notify, __u64 ppn)
{
    RUN_TIMED(seeNotify(ppn));
}

/* camessage(struct client *): from now on, this thread serves that circuit until it ends. Each batch of messages causes
 * a trap here, also one that only reads. So this probe is attached only to IOCs without rsrvCheckPut(). */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_camessage, __u64 client)
{
    struct thread *th;
    struct caller c;

    KEEP_THREAD_STACK(ctx);
    if (!isTakenAway(ctx) && enterProbe(&c, EBPFMON_HIT_ENTRY) && (th = getThread(c.tid)))
        th->client = client;
    return 0;
}
