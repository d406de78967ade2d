// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Who wrote what. Every write to a field ends in dbPut (dbAccess.c), but for link fields (dbPutFieldLink,
 * seen at dbPutField) and for the refused ones, which are seen where they are refused.
 *
 * Offsets of public structs (dbAddr.h, dbChannel.h, link.h), the same in all of EPICS 7.
 */
#include "who.bpf.h"

#define DBADDR_PRECORD   0
#define DBADDR_PFIELD    8
#define DBADDR_PFLDDES   16
#define DBADDR_NELEMENTS 24
#define DBADDR_FIELDTYPE 32 /* short field_type, field_size, special, dbr_field_type */
#define DBCHANNEL_ADDR   8
#define LINK_TYPE        8
#define LINK_VALUE       32
#define LINK_PVNAME      48 /* value.pv_link.pvname */
#define LINK_PVLMASK     72 /* value.pv_link.pvlMask */

#define DBF_INLINK  14
#define DBF_FWDLINK 16
#define SPC_NOMOD   1
#define AS_WRITE    2 /* asLib.h: asNOACCESS, asREAD, asWRITE */
#define MAX_STRING  40
#define CA_PROTO_WRITE        4
#define CA_PROTO_WRITE_NOTIFY 19

/* dbFldTypes.h: DBR_STRING … DBR_ENUM */
static __always_inline __u32 dbrSize(int type)
{
    switch (type) {
    case 0: return MAX_STRING;
    case 1: case 2: return 1;
    case 3: case 4: case 11: return 2;
    case 5: case 6: case 9: return 4;
    case 7: case 8: case 10: return 8;
    default: return 2; /* DBR_PUT_ACKT, DBR_PUT_ACKS */
    }
}

struct addr {
    __u64 precord, pfield, pfldDes;
    __s64 nElements;
    __s16 fieldType, fieldSize, special, dbrType;
};

static __always_inline int readAddr(struct addr *a, __u64 at)
{
    return bpf_probe_read_user(a, sizeof(*a), (void *)at);
}

/* A put-callback that found its record busy restarts in a callback's thread when the record completes (dbNotify.c);
 * the record's ppn leads back to who asked. It writes through the DBADDR of its own channel, which nobody else does:
 * so whoever else writes to the record while it waits is not taken for it. */
static __always_inline __u64 notifyOf(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 addrAt)
{
    __u64 ppn = readPtr(precord + conf->ppn);

    return ppn && addrAt == readPtr(ppn + conf->ppnChan) + DBCHANNEL_ADDR ? ppn : 0;
}

/* The circuit of one that was asked for before we looked: usrPvt is rsrv's channel_in_use (camessage.c). Other users
 * of dbNotify have something else there, so it must name this very record. */
static __always_inline __u64 clientOfNotify(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 ppn)
{
    __u64 pciu, client;
    __u16 family = 0;

    pciu = readPtr(ppn + conf->ppnUsr);
    if (!pciu || readPtr(readPtr(pciu + conf->ciuDbch) + DBCHANNEL_ADDR + DBADDR_PRECORD) != precord)
        return 0;
    client = readPtr(pciu + conf->ciuClient);
    bpf_probe_read_user(&family, sizeof(family), (void *)(client + conf->clAddr));
    return family == AF_INET ? client : 0;
}

/* Which message this is. The receive buffer of the circuit ends with the last byte that was received;
 * struct message_buffer (rsrv/server.h): buf, stk (the message being served), maxstk, cnt. */
static __always_inline __u32 readSeq(const struct thread *th, const struct ebpfMonTargetConf *conf,
                                     const struct ebpfMonPeer *peer, __u32 *seq)
{
    __u32 stk = 0, cnt = 0;

    *seq = 0;
    if (!th->received || !peer->sport)
        return EBPFMON_SEQ_NONE;
    if (!th->client) {
        *seq = th->copied;
        return th->received > 1 ? EBPFMON_SEQ_SHARED : EBPFMON_SEQ_RECEIVED;
    }
    if (bpf_probe_read_user(&stk, sizeof(stk), (void *)(th->client + conf->clRecvStk)) ||
        bpf_probe_read_user(&cnt, sizeof(cnt), (void *)(th->client + conf->clRecvCnt)) || stk > cnt)
        return EBPFMON_SEQ_NONE;
    *seq = th->copied - (cnt - stk);
    return EBPFMON_SEQ_MESSAGE;
}

/* In-process CA: dbCaLink's thread (dbCa.c) writes through a channel that is named as the link has it. */
static __always_inline int isCaLinkThread(const char *comm)
{
    __u64 name;

    __builtin_memcpy(&name, comm, sizeof(name));
    return name == 0x6b6e694c61436264ull; /* "dbCaLink", little-endian */
}

/* The put that follows is made by the second half of a record that somebody else set going. */
static __always_inline void tellCause(struct thread *th, const struct ebpfMonTargetConf *conf, __u32 tgid, __u32 tid,
                                      __u64 root)
{
    struct ebpfMonCauseEvent *known;
    struct ebpfMonRecState *st;
    __u32 slot = 0;

    if (!recordSlot(tgid, root, &slot))
        return;
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!st || st->noted != EBPFMON_NOTED_CAUSE)
        return;
    known = bpf_map_lookup_elem(&causes, &slot);
    if (!known || known->head.tgid != tgid)
        return;
    __builtin_memcpy(&th->cause, known, sizeof(th->cause));
    th->cause.head.kind = EBPFMON_EV_CAUSE;
    th->cause.head.tid = tid;
    th->cause.head.iocId = conf->iocId;
    th->cause.put = (__u32)th->ev.id;
    if (bpf_ringbuf_output(&ring, &th->cause, sizeof(th->cause), BPF_RB_NO_WAKEUP))
        countLost(EBPFMON_LOST_RING);
}

/* "addrAt": the DBADDR, 0: none; "chan": the dbChannel that it is known to be part of, 0: perhaps. */
static __always_inline void begin(struct thread *th, const struct ebpfMonTargetConf *conf, __u32 tgid,
                                  __u32 tid, const struct addr *a, __u64 addrAt, __u64 chan, __u8 site)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    /* below level chains nobody keeps the locks up to date */
    __u32 top = conf->level >= EBPFMON_CHAINS && th->seen.heldCount <= EBPFMON_NESTED ? th->seen.heldCount : 0;
    __u64 client = th->client, ppn = 0;
    struct notified *asked = 0;

    ev->head.kind = EBPFMON_EV_PUT;
    ev->head.tgid = tgid;
    ev->head.tid = tid;
    ev->head.iocId = conf->iocId;
    ev->head.ktime = bpf_ktime_get_ns();
    ev->id = ++th->putId;
    ev->addr = addrAt;
    ev->precord = a->precord;
    ev->pfldDes = a->pfldDes;
    ev->pfield = a->pfield;
    ev->nElements = a->nElements;
    ev->fieldType = a->fieldType;
    ev->fieldSize = a->fieldSize;
    ev->oldCount = -1;
    ev->site = site;
    ev->network = 0;
    ev->linkType = ev->linkMask = 0;
    ev->newLen = ev->oldLen = 0;
    ev->root = top ? th->seen.held[(top - 1) & (EBPFMON_NESTED - 1)].root : 0;
    ev->source.begin = 0;
    if (top == 1)
        ev->source = th->from.by;
    ev->locked = site == EBPFMON_SITE_PUT && top == 1 && ev->root == a->precord && !th->locked.id &&
                 !th->putDepth;
    if (!client && addrAt && (ppn = notifyOf(conf, a->precord, addrAt))) {
        struct notifyKey nk = { ppn, tgid };

        asked = bpf_map_lookup_elem(&notifies, &nk);
        if (!asked)
            client = clientOfNotify(conf, a->precord, ppn);
    }
    ev->seqKind = EBPFMON_SEQ_NONE;
    ev->channel[0] = 0;
    if (asked) {
        ev->who = asked->who;
        ev->seq = asked->seq;
        ev->seqKind = asked->seqKind;
        asked->made = 1;
        client = ev->who.isCA;
    } else {
        if (client)
            readWho(&ev->who, th, conf, client);
        else
            /* a put to a record that is busy for somebody is not by that one */
            readCaller(&ev->who, th, conf, tgid, ev->root != a->precord ? ev->root : 0);
        if (th->client || !client)
            ev->seqKind = readSeq(th, conf, &ev->who.peer, &ev->seq);
    }
    if (ev->who.peer.addr)
        bpf_get_current_comm(ev->who.comm, sizeof(ev->who.comm)); /* not that of the thread that it waited for */
    if (client || ev->who.peer.addr || isCaLinkThread(ev->who.comm)) {
        if (!chan && addrAt)
            chan = addrAt - DBCHANNEL_ADDR;
        if (chan)
            bpf_probe_read_user_str(ev->channel, sizeof(ev->channel), (void *)readPtr(chan));
    }
    if (!client && !asked && ev->root)
        tellCause(th, conf, tgid, tid, ev->root);
}

static __always_inline __u32 readData(struct thread *th, __u32 at, __u64 from, __u64 len)
{
    __u64 n = len > EBPFMON_VAL_MAX ? EBPFMON_VAL_MAX : len;

    at &= 2 * EBPFMON_VAL_MAX - 1;
    barrier_var(n);
    if (n == 0 || n > EBPFMON_VAL_MAX || !from)
        return 0;
    if (bpf_probe_read_user(&th->data[at], n, (void *)from)) {
        countLost(EBPFMON_LOST_FAULT);
        return 0;
    }
    return n;
}

static __always_inline void send(struct thread *th, __u64 wakeup)
{
    __u64 n = th->ev.oldLen + th->ev.newLen;

    n &= 4 * EBPFMON_VAL_MAX - 1; /* for the verifier: it is at most half of that */
    barrier_var(n);
    if (bpf_ringbuf_output(&ring, &th->ev, sizeof(th->ev) + n, wakeup))
        countLost(EBPFMON_LOST_RING);
}

SEC("uprobe")
int ebpfmon_put(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ebpfMonPutEvent *ev;
    struct thread *th;
    struct addr a;
    __s64 nRequest = PT_REGS_PARM4(ctx);
    struct inPut *in;
    __s64 n;
    __u32 depth;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (!th)
        return 0;
    depth = th->putDepth;
    if (depth >= EBPFMON_NESTED)
        depth = 0; /* returns that were missed while the probe was being detached */
    in = &th->pending[depth & (EBPFMON_NESTED - 1)];
    in->sp = PT_REGS_SP(ctx);
    if (readAddr(&a, PT_REGS_PARM1(ctx))) {
        countLost(EBPFMON_LOST_FAULT);
        in->id = 0; /* its return is not to be taken for that of the put around it */
        th->putDepth = depth + 1;
        return 0;
    }
    begin(th, conf, tgid, tid, &a, PT_REGS_PARM1(ctx), 0, EBPFMON_SITE_PUT);
    ev = &th->ev;
    ev->dbrType = (__s16)PT_REGS_PARM2(ctx);
    ev->nRequest = nRequest;

    /* the old value, still in the record */
    n = a.nElements;
    if (n > 1 || a.special) {
        struct fldKey fk = { a.pfldDes, tgid };
        struct ebpfMonArrayConf *arr = bpf_map_lookup_elem(&arrays, &fk);

        if (arr) {
            __u32 count = 0;

            bpf_probe_read_user(&count, sizeof(count), (void *)(a.precord + arr->count));
            if (arr->ptr)
                a.pfield = readPtr(a.precord + arr->ptr);
            if (n > 1) {
                ev->oldCount = count;
                if (n > count)
                    n = count;
            }
        }
    }
    if (n < 0)
        n = 0;
    ev->oldLen = readData(th, 0, a.pfield, (__u64)n * (__u16)a.fieldSize);
    if (nRequest > 0)
        ev->newLen = readData(th, ev->oldLen, PT_REGS_PARM3(ctx), (__u64)nRequest * dbrSize(ev->dbrType));
    in->id = ev->id;
    in->pfield = a.pfield;
    in->size = a.nElements == 1 && a.fieldType < DBF_INLINK ? (__u16)a.fieldSize : 0;
    in->locked = ev->locked;
    th->putDepth = depth + 1;
    send(th, BPF_RB_NO_WAKEUP);
    return 0;
}

SEC("uprobe")
int ebpfmon_put_return(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct thread *th = bpf_map_lookup_elem(&threads, &tid);
    struct inPut *in;
    __u32 depth;

    if (!conf || !th || th->putDepth == 0)
        return 0;
    depth = th->putDepth - 1;
    in = &th->pending[depth & (EBPFMON_NESTED - 1)];
    /* A return probe that is a perf event is called for each process that has one on this file: with two IOCs twice
     * for one return (seen on 5.10, 6.1 and 6.12, not on 7.3). The second is not the return of the put around it. */
    if (depth < EBPFMON_NESTED && PT_REGS_SP(ctx) < in->sp)
        return 0;
    countHit(tgid, EBPFMON_HIT_RETURN, 1);
    th->putDepth = depth;
    if (depth >= EBPFMON_NESTED)
        return 0;
    if (!in->id)
        return 0;
    if (in->locked && !PT_REGS_RC(ctx)) {
        th->locked = *in;
        th->lockedStatus = 0;
    } else {
        tellResult(conf, tgid, tid, in, PT_REGS_RC(ctx));
    }
    return 0;
}

/* The value of the CA message that this circuit is being served: caHdr (caProto.h), in network byte order.
 * 0: it is not a write. */
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
    if (h.cmd != __builtin_bswap16(CA_PROTO_WRITE) && h.cmd != __builtin_bswap16(CA_PROTO_WRITE_NOTIFY))
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

/* rsrvCheckPut(struct channel_in_use *): what it is about to answer. Also called when a channel is
 * created, to tell the client its rights: then no write is being served. */
SEC("uprobe")
int ebpfmon_checkput(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), pciu = PT_REGS_PARM1(ctx), client, as;
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct thread *th;
    struct addr a;
    int active = 0, access = AS_WRITE;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    if (readAddr(&a, readPtr(pciu + conf->ciuDbch) + DBCHANNEL_ADDR))
        return 0;
    if (a.special != SPC_NOMOD) {
        if (conf->asActive)
            bpf_probe_read_user(&active, sizeof(active), (void *)conf->asActive);
        if (!active)
            return 0;
        as = readPtr(pciu + conf->ciuAs);
        bpf_probe_read_user(&access, sizeof(access), (void *)(as + conf->asAccess));
        if (access >= AS_WRITE)
            return 0;
    }
    th = threadOf(tid);
    if (!th)
        return 0;
    client = readPtr(pciu + conf->ciuClient);
    /* When access rights change, another thread asks this for each channel (casAccessRightsCB); the circuit's buffer
     * then still has a message that was served long ago. */
    if (th->client != client)
        return 0;
    begin(th, conf, tgid, tid, &a, 0, readPtr(pciu + conf->ciuDbch), EBPFMON_SITE_DENIED);
    th->ev.network = 1;
    if (a.nElements == 1 && a.fieldType < DBF_INLINK)
        th->ev.oldLen = readData(th, 0, a.pfield, (__u16)a.fieldSize);
    if (readMessage(th, conf, client))
        send(th, BPF_RB_NO_WAKEUP);
    return 0;
}

/* dbPutField: link fields, and records whose DISP refuses writes from outside. */
SEC("uprobe")
int ebpfmon_putfield(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), name;
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ebpfMonPutEvent *ev;
    struct thread *th;
    struct addr a;
    __s64 nRequest = PT_REGS_PARM4(ctx);
    __u8 disp = 0;
    int isLink;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    if (readAddr(&a, PT_REGS_PARM1(ctx)))
        return 0;
    isLink = a.fieldType >= DBF_INLINK && a.fieldType <= DBF_FWDLINK;
    if (a.pfield != a.precord + conf->disp)
        bpf_probe_read_user(&disp, sizeof(disp), (void *)(a.precord + conf->disp));
    if (!isLink && !disp)
        return 0;
    th = threadOf(tid);
    if (!th)
        return 0;
    begin(th, conf, tgid, tid, &a, 0, PT_REGS_PARM1(ctx) - DBCHANNEL_ADDR, disp ? EBPFMON_SITE_DISABLED : EBPFMON_SITE_LINK);
    ev = &th->ev;
    ev->dbrType = (__s16)PT_REGS_PARM2(ctx);
    ev->nRequest = nRequest;
    if (isLink) {
        bpf_probe_read_user(&ev->linkType, sizeof(ev->linkType), (void *)(a.pfield + LINK_TYPE));
        if (ev->linkType == 1 || (ev->linkType >= 9 && ev->linkType <= 11)) { /* PV, PN, DB, CA */
            bpf_probe_read_user(&ev->linkMask, sizeof(ev->linkMask), (void *)(a.pfield + LINK_PVLMASK));
            name = readPtr(a.pfield + LINK_PVNAME);
        } else {
            name = readPtr(a.pfield + LINK_VALUE);
        }
        if (name) {
            long n = bpf_probe_read_user_str(th->data, EBPFMON_VAL_MAX, (void *)name);

            ev->oldLen = n > 0 && n <= EBPFMON_VAL_MAX ? n : 0;
        }
    } else if (a.nElements == 1) {
        ev->oldLen = readData(th, 0, a.pfield, (__u16)a.fieldSize);
    }
    if (nRequest > 0)
        ev->newLen = readData(th, ev->oldLen, PT_REGS_PARM3(ctx), (__u64)nRequest * dbrSize(ev->dbrType));
    /* a changed link changes what a chain reaches: the user half is to follow at once */
    send(th, isLink ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
    return 0;
}

/* dbProcessNotify: who asks, for the record may be busy. And a put-callback to a record whose DISP is set is refused
 * here (dbNotify.c). */
SEC("uprobe")
int ebpfmon_notify(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), ppn = PT_REGS_PARM1(ctx);
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct notifyKey nk = { ppn, tgid };
    struct thread *th;
    struct addr a;
    __u8 disp = 0;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (!th)
        return 0;
    readWho(&th->notified.who, th, conf, th->client);
    th->notified.seqKind = readSeq(th, conf, &th->notified.who.peer, &th->notified.seq);
    th->notified.made = 0;
    bpf_map_update_elem(&notifies, &nk, &th->notified, BPF_ANY);
    if (!th->client || readAddr(&a, readPtr(ppn + conf->ppnChan) + DBCHANNEL_ADDR))
        return 0;
    if (a.pfield != a.precord + conf->disp)
        bpf_probe_read_user(&disp, sizeof(disp), (void *)(a.precord + conf->disp));
    if (!disp)
        return 0;
    begin(th, conf, tgid, tid, &a, 0, readPtr(ppn + conf->ppnChan), EBPFMON_SITE_DISABLED);
    if (a.nElements == 1 && a.fieldType < DBF_INLINK)
        th->ev.oldLen = readData(th, 0, a.pfield, (__u16)a.fieldSize);
    if (readMessage(th, conf, th->client)) {
        th->ev.network = 1; /* as for a denied put */
        send(th, BPF_RB_NO_WAKEUP);
    }
    return 0;
}

/* camessage(struct client *): this thread serves that circuit, now and until it ends. */
SEC("uprobe")
int ebpfmon_camessage(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid();
    __u32 tgid = id >> 32, tid = (__u32)id;
    struct thread *th;

    if (!bpf_map_lookup_elem(&targets, &tgid))
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (th)
        th->client = PT_REGS_PARM1(ctx);
    return 0;
}

/* dbCaPutLinkCallback(struct link *, …) (dbCa.c): a record writes through a CA link, in its own chain. The
 * value goes out later, from thread dbCaLink, which does not know any more whose it is. */
SEC("uprobe")
int ebpfmon_calink(struct pt_regs *ctx)
{
    __u64 id = bpf_get_current_pid_tgid(), link = PT_REGS_PARM1(ctx);
    __u32 tgid = id >> 32, tid = (__u32)id, top, slot = 0;
    struct ebpfMonTargetConf *conf = bpf_map_lookup_elem(&targets, &tgid);
    struct ebpfMonCauseEvent *ev, *known = 0;
    struct ebpfMonRecState *st;
    struct thread *th;

    if (!conf)
        return 0;
    countHit(tgid, EBPFMON_HIT_ENTRY, 1);
    th = threadOf(tid);
    if (!th)
        return 0;
    ev = &th->cause;
    top = conf->level >= EBPFMON_CHAINS && th->seen.heldCount <= EBPFMON_NESTED ? th->seen.heldCount : 0;
    ev->root = top ? th->seen.held[(top - 1) & (EBPFMON_NESTED - 1)].root : 0;
    if (!th->client && ev->root && recordSlot(tgid, ev->root, &slot)) {
        st = bpf_map_lookup_elem(&recState, &slot);
        if (st && st->noted == EBPFMON_NOTED_CAUSE)
            known = bpf_map_lookup_elem(&causes, &slot);
    }
    if (known && known->head.tgid == tgid) {
        ev->who = known->who;
        ev->root = known->root;
        ev->byMain = known->byMain;
    } else {
        ev->byMain = tid == tgid;
        readCaller(&ev->who, th, conf, tgid, ev->root);
    }
    ev->head.kind = EBPFMON_EV_CALINK;
    ev->head.tgid = tgid;
    ev->head.tid = tid;
    ev->head.iocId = conf->iocId;
    ev->head.ktime = bpf_ktime_get_ns();
    ev->begin = top ? th->seen.held[(top - 1) & (EBPFMON_NESTED - 1)].begin : 0;
    ev->link = link;
    ev->name[0] = 0;
    bpf_probe_read_user_str(ev->name, sizeof(ev->name), (void *)readPtr(link + LINK_PVNAME));
    if (bpf_ringbuf_output(&ring, ev, sizeof(*ev), BPF_RB_NO_WAKEUP))
        countLost(EBPFMON_LOST_RING);
    return 0;
}
