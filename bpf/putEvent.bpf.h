/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The event of a put: which field, by whom, in whose chain, through which message; old and new value. */
#ifndef EBPFMON_PUTEVENT_BPF_H
#define EBPFMON_PUTEVENT_BPF_H

#include "client.bpf.h"
#include "ebpfMonBase.h"
#include "passRoot.bpf.h"

/* Bytes of an element. dbFldTypes.h: DBR_STRING … DBR_ENUM */
static __always_inline __u32 elementSize(int type)
{
    switch (type) {
    case 0: return EBPFMON_MAX_STRING;
    case 1: case 2: return 1;
    case 3: case 4: case 11: return 2;
    case 5: case 6: case 9: return 4;
    case 7: case 8: case 10: return 8;
    default: return 2; /* DBR_PUT_ACKT, DBR_PUT_ACKS */
    }
}

/* dbAddr.h: DBADDR */
struct addr {
    __u64 precord, pfield, pfldDes;
    __s64 nElements;
    __s16 fieldType, fieldSize, special, dbrType;
};

_Static_assert(sizeof(struct addr) == EBPFMON_DBADDR_SIZE &&
               __builtin_offsetof(struct addr, pfield) == EBPFMON_DBADDR_PFIELD &&
               __builtin_offsetof(struct addr, pfldDes) == EBPFMON_DBADDR_PFLDDES &&
               __builtin_offsetof(struct addr, nElements) == EBPFMON_DBADDR_NELEMENTS &&
               __builtin_offsetof(struct addr, fieldType) == EBPFMON_DBADDR_FIELDTYPE, "DBADDR");

/* The number that a DBF or DBR type of this IOC has in EPICS 7. */
static __always_inline __s16 typeOf(const struct ebpfMonTargetConf *conf, __s16 type)
{
    return type > EBPFMON_DBF_ULONG ? type + conf->dbfGap : type;
}

static __always_inline int readAddr(const struct ebpfMonTargetConf *conf, struct addr *a, __u64 at)
{
    int failed = bpf_probe_read_user(a, sizeof(*a), (void *)at);

    a->fieldType = typeOf(conf, a->fieldType);
    return failed;
}

/* Where the DBADDR is that belongs to the pointer at "at": to a dbChannel, or in EPICS 3.14 to the DBADDR itself. */
static __always_inline __u64 addrBehind(const struct ebpfMonTargetConf *conf, __u64 at)
{
    return readPtr(at) + conf->chanAddr;
}

/* The DBADDR of a struct channel_in_use, which has it as a member in EPICS 3.14. */
static __always_inline __u64 addrOfChannel(const struct ebpfMonTargetConf *conf, __u64 pciu)
{
    return conf->chanAddr ? addrBehind(conf, pciu + conf->ciuDbch) : pciu + conf->ciuDbch;
}

/* The record's DISP is set, and this is not a put to DISP itself. */
static __always_inline int isDisabled(const struct ebpfMonTargetConf *conf, const struct addr *a)
{
    __u8 disp = 0;

    if (a->pfield != a->precord + conf->disp)
        bpf_probe_read_user(&disp, sizeof(disp), (void *)(a->precord + conf->disp));
    return disp;
}

/*
 * A put-callback that found its record busy restarts in a callback's thread when the record completes (dbNotify.c); the
 * record's ppn leads back to who asked. It writes through the DBADDR of its own channel, which nobody else does: so
 * whoever else writes to the record meanwhile is not taken for it. Returns the processNotify, 0: this is none.
 */
static __always_inline __u64 findNotify(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 addrAt)
{
    __u64 ppn = readPtr(precord + conf->ppn);

    return ppn && addrAt == addrBehind(conf, ppn + conf->ppnChan) ? ppn : 0;
}

/* The circuit of a put-callback from before our probes: usrPvt is rsrv's channel_in_use (camessage.c). Other users of
 * dbNotify have something else there, so it must name this very record. */
static __always_inline __u64 clientOfNotify(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 ppn)
{
    __u64 pciu, client;
    __u16 family = 0;

    pciu = readPtr(ppn + conf->ppnUsr);
    if (!pciu || readPtr(addrOfChannel(conf, pciu) + EBPFMON_DBADDR_PRECORD) != precord)
        return 0;
    client = readPtr(pciu + conf->ciuClient);
    bpf_probe_read_user(&family, sizeof(family), (void *)(client + conf->clAddr));
    return family == AF_INET ? client : 0;
}

/* Which message this is. The receive buffer of the circuit ends with the last byte that was received; struct
 * message_buffer (rsrv/server.h): buf, stk (the message being served), maxstk, cnt. *from: where what was received last
 * begins. Returns enum ebpfMonSeq. */
static __always_inline __u32 readSeq(const struct thread *th, const struct ebpfMonTargetConf *conf,
                                     const struct ebpfMonPeer *peer, __u32 *seq, __u32 *from)
{
    __u32 stk = 0, cnt = 0;

    *seq = *from = 0;
    if (!th->received || !peer->sport)
        return EBPFMON_SEQ_NONE;
    if (!th->client) {
        *seq = th->copied;
        *from = th->copiedFrom;
        return th->received > 1 ? EBPFMON_SEQ_SHARED : EBPFMON_SEQ_RECEIVED;
    }
    if (bpf_probe_read_user(&stk, sizeof(stk), (void *)(th->client + conf->clRecvStk)) ||
        bpf_probe_read_user(&cnt, sizeof(cnt), (void *)(th->client + conf->clRecvCnt)) || stk > cnt)
        return EBPFMON_SEQ_NONE;
    *seq = th->copied - (cnt - stk);
    return EBPFMON_SEQ_MESSAGE;
}

/* CA within one process: dbCaLink's thread (dbCa.c) writes through a channel that is named as the link has it. */
static __always_inline int isCaLinkThread(const char *comm)
{
    __u64 name;

    __builtin_memcpy(&name, comm, sizeof(name));
    return name == 0x6b6e694c61436264ull; /* "dbCaLink", little-endian */
}

/* Who began what is processing asynchronously in the chain of "root"; NULL: nothing is, or it is not known. */
static __always_inline struct ebpfMonCauseEvent *findCause(__u32 tgid, __u64 root)
{
    struct ebpfMonCauseEvent *known;
    struct ebpfMonRecState *st;
    __u32 slot = 0;

    if (!findSlot(tgid, root, &slot))
        return 0;
    st = bpf_map_lookup_elem(&recState, &slot);
    if (!st || st->noted != EBPFMON_NOTED_CAUSE)
        return 0;
    known = bpf_map_lookup_elem(&causes, &slot);
    return known && known->head.tgid == tgid ? known : 0;
}

/* The put that follows is made by the completion of a record that somebody else set going. */
static __always_inline void sendCause(const struct caller *c, struct thread *th, __u64 root)
{
    struct ebpfMonCauseEvent *known = findCause(c->tgid, root);

    if (!known)
        return;
    __builtin_memcpy(&th->cause, known, sizeof(th->cause));
    th->cause.head.kind = EBPFMON_EV_CAUSE;
    th->cause.head.tid = c->tid;
    th->cause.head.iocId = c->conf->iocId;
    th->cause.put = (__u32)th->ev.id;
    sendEvent(&th->cause, sizeof(th->cause), BPF_RB_NO_WAKEUP);
}

/* By whom, and through which message. "addrAt": the DBADDR, 0: none. Returns nonzero: by a CA client, or by somebody who
 * asked for it earlier. */
static __always_inline int fillWriter(const struct caller *c, struct thread *th, const struct addr *a, __u64 addrAt)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    struct notified *asked = 0;
    __u64 client = th->client, ppn = 0;

    if (!client && addrAt && (ppn = findNotify(c->conf, a->precord, addrAt))) {
        struct notifyKey nk = { ppn, c->tgid };

        asked = bpf_map_lookup_elem(&notifies, &nk);
        if (!asked)
            client = clientOfNotify(c->conf, a->precord, ppn);
    }
    ev->seqKind = EBPFMON_SEQ_NONE;
    if (asked) {
        ev->who = asked->who;
        ev->seq = asked->seq;
        ev->seqFrom = asked->seqFrom;
        ev->seqKind = asked->seqKind;
        asked->made = 1;
        client = ev->who.isCA;
    } else {
        if (client)
            readClient(&ev->who, th, c->conf, client);
        else
            /* a put to a record that is busy for somebody is not by that one */
            readChainClient(&ev->who, c, th, ev->root != a->precord ? ev->root : 0);
        if (th->client || !client)
            ev->seqKind = readSeq(th, c->conf, &ev->who.peer, &ev->seq, &ev->seqFrom);
    }
    if (ev->who.peer.addr)
        bpf_get_current_comm(ev->who.comm, sizeof(ev->who.comm)); /* not that of the thread that it waited for */
    return client || asked;
}

/* "addrAt": the DBADDR; it is that of a put-callback or of a link only if "site" is EBPFMON_SITE_PUT. */
static __always_inline void fillPutEvent(const struct caller *c, struct thread *th, const struct addr *a,
                                         __u64 addrAt, __u8 site)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    /* below level chains nobody keeps the locks up to date */
    __u32 top = c->conf->level >= EBPFMON_CHAINS && th->seen.heldCount <= EBPFMON_NESTED ? th->seen.heldCount : 0;
    int asked;

    fillHead(&ev->head, c, EBPFMON_EV_PUT, bpf_ktime_get_ns());
    ev->id = ++th->putId;
    ev->addr = site == EBPFMON_SITE_PUT ? addrAt : 0;
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
    ev->root = top ? rootOf(c, th, heldAt(th, top - 1)) : 0;
    ev->source.begin = 0;
    if (top == 1)
        ev->source = th->from.source;
    ev->locked = site == EBPFMON_SITE_PUT && top == 1 && ev->root == a->precord && !th->locked.id &&
                 !th->putDepth && !isInUntimedPass(c, heldAt(th, 0));
    ev->channel[0] = 0;
    asked = fillWriter(c, th, a, ev->addr);
    /* the name in the dbChannel that the DBADDR is part of */
    if (c->conf->chanAddr && (asked || ev->who.peer.addr || isCaLinkThread(ev->who.comm)))
        bpf_probe_read_user_str(ev->channel, sizeof(ev->channel), (void *)readPtr(addrAt - c->conf->chanAddr));
    if (!asked && ev->root)
        sendCause(c, th, ev->root);
}

/* Copies "len" bytes of the IOC to place "at" of the event's data. Returns how many were copied. */
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

/* The old value of a field that is no array. */
static __always_inline void readOldScalar(struct thread *th, const struct addr *a)
{
    if (a->nElements == 1 && a->fieldType < EBPFMON_DBF_INLINK)
        th->ev.oldLen = readData(th, 0, a->pfield, (__u16)a->fieldSize);
}

static __always_inline void sendPut(struct thread *th, __u64 wakeup)
{
    __u64 n = th->ev.oldLen + th->ev.newLen;

    n &= 4 * EBPFMON_VAL_MAX - 1; /* for the verifier: it is at most half of that */
    barrier_var(n);
    sendEvent(&th->ev, sizeof(th->ev) + n, wakeup);
}

#endif
