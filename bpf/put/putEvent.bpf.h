/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Makes the event of a put: which field, by whom, in which chain, by which message; old and new value. */
#ifndef EBPFMON_PUTEVENT_BPF_H
#define EBPFMON_PUTEVENT_BPF_H

#include "common/dbAddr.bpf.h"
#include "pass/passRoot.bpf.h"
#include "thread/client.bpf.h"

/* Bytes of an element of a type: DBR_STRING … DBR_ENUM of dbFldTypes.h. */
static __always_inline __u32 getElementSize(int type)
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

/*
 * A put-callback that finds its record busy goes on in a thread for callbacks when the record has completed
 * (dbNotify.c). The record's ppn leads back to the client that asked. A put-callback writes through the DBADDR of its
 * own channel, which nobody else does. So a put of somebody else to this record meanwhile is not mistaken for it.
 * Returns the address of the processNotify; 0: this is no put-callback.
 */
static __always_inline __u64 findNotify(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 addrAt)
{
    __u64 ppn = readPtr(precord + conf->ppn);

    return ppn && addrAt == findAddr(conf, ppn + conf->ppnChan) ? ppn : 0;
}

/* Finds the circuit of a put-callback that began before our probes were attached. usrPvt is rsrv's channel_in_use
 * (camessage.c). Other users of dbNotify have something else there, so we check that it leads to this record. */
static __always_inline __u64 readNotifyClient(const struct ebpfMonTargetConf *conf, __u64 precord, __u64 ppn)
{
    __u64 pciu, client;
    __u16 family = 0;

    pciu = readPtr(ppn + conf->ppnUsr);
    if (!pciu || readPtr(findChannelAddr(conf, pciu) + EBPFMON_DbAddr_precord) != precord)
        return 0;
    client = readPtr(pciu + conf->ciuClient);
    bpf_probe_read_user(&family, sizeof(family), (void *)(client + conf->clAddr));
    return family == AF_INET ? client : 0;
}

/* Finds which message this is. The receive buffer of the circuit ends with the last byte that was received. struct
 * message_buffer (rsrv/server.h) has buf, stk (the message that is being served), maxstk, cnt. *from: TCP sequence
 * number at which the last receive begins. Returns enum ebpfMonSeq. */
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
        return isCertain(th, conf) ? EBPFMON_SEQ_RECEIVED : EBPFMON_SEQ_SHARED;
    }
    if (bpf_probe_read_user(&stk, sizeof(stk), (void *)(th->client + conf->clRecvStk)) ||
        bpf_probe_read_user(&cnt, sizeof(cnt), (void *)(th->client + conf->clRecvCnt)) || stk > cnt)
        return EBPFMON_SEQ_NONE;
    *seq = th->copied - (cnt - stk);
    return EBPFMON_SEQ_MESSAGE;
}

/* Nonzero: a thread of CA links (dbCa.c). It writes within the process, through a channel that has the name in the
 * link. */
static __always_inline int isCaLinkThread(const char *comm)
{
    __u64 name;

    __builtin_memcpy(&name, comm, sizeof(name));
    return name == 0x6b6e694c61436264ull; /* "dbCaLink", little-endian */
}

/* Finds who began the asynchronous processing that completes in the chain of "root". NULL: there is none, or it is not
 * known. */
static __always_inline struct ebpfMonCauseEvent *findCause(__u32 tgid, __u64 root)
{
    struct ebpfMonCauseEvent *known;
    struct ebpfMonRecState *st;
    __u32 slot = 0;

    if (!findSlot(tgid, root, &slot))
        return 0;
    st = findState(slot);
    if (!st || st->noted != EBPFMON_NOTED_CAUSE)
        return 0;
    known = bpf_map_lookup_elem(&causes, &slot);
    return known && known->head.tgid == tgid ? known : 0;
}

/* Tells the user part that the next put is part of an asynchronous processing, and who began that. */
static __always_inline void sendCause(const struct caller *c, struct thread *th, __u64 root)
{
    struct ebpfMonCauseEvent *known = findCause(c->tgid, root);

    if (!known)
        return;
    __builtin_memcpy(&th->cause, known, sizeof(th->cause));
    th->cause.head.kind = EBPFMON_EV_CAUSE;
    th->cause.sourceTid = known->head.tid;
    th->cause.head.tid = c->tid;
    th->cause.head.iocId = c->conf->iocId;
    th->cause.put = (__u32)th->ev.id;
    sendEvent(&th->cause, sizeof(th->cause), BPF_RB_NO_WAKEUP);
}

/* Finds who made the put, and by which message. "addrAt": the DBADDR; 0: none. Nonzero: a CA client made it, or a
 * client that had requested it earlier. */
static __always_inline int fillWriter(const struct caller *c, struct thread *th, const struct addr *a, __u64 addrAt)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    struct notified *asked = 0;
    __u64 client = th->client, ppn = 0;

    if (!client && addrAt && (ppn = findNotify(c->conf, a->precord, addrAt))) {
        struct notifyKey nk = { ppn, c->tgid };

        asked = bpf_map_lookup_elem(&notifies, &nk);
        if (!asked)
            client = readNotifyClient(c->conf, a->precord, ppn);
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
            /* if somebody writes to a record that is busy for a client, that client is not the writer */
            readChainClient(&ev->who, c, th, ev->root != a->precord ? ev->root : 0);
        if (th->client || !client)
            ev->seqKind = readSeq(th, c->conf, &ev->who.peer, &ev->seq, &ev->seqFrom);
    }
    if (ev->who.peer.addr)
        bpf_get_current_comm(ev->who.comm, sizeof(ev->who.comm)); /* the name of this thread, not of the thread that
                                                                   * asked */
    return client || asked;
}

/* "addrAt": the DBADDR. Only if "kind" is EBPFMON_PUT_VALUE, it can be that of a put-callback or of a link. */
static __always_inline void fillPutEvent(const struct caller *c, struct thread *th, const struct addr *a,
                                         __u64 addrAt, __u8 kind)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    struct ebpfMonHeld *chain;
    __u32 top;
    int asked;

    /* below level chains the lock sets are not kept up to date */
    top = c->conf->level >= EBPFMON_CHAINS && th->seen.heldCount <= EBPFMON_NESTED ? th->seen.heldCount : 0;

    fillHead(&ev->head, c, EBPFMON_EV_PUT, bpf_ktime_get_ns());
    ev->id = ++th->putId;
    ev->addr = kind == EBPFMON_PUT_VALUE ? addrAt : 0;
    ev->precord = a->precord;
    ev->pfldDes = a->pfldDes;
    ev->pfield = a->pfield;
    ev->nElements = a->nElements;
    ev->fieldType = a->fieldType;
    ev->fieldSize = a->fieldSize;
    ev->oldCount = -1;
    ev->putKind = kind;
    ev->network = 0;
    ev->linkType = ev->linkMask = 0;
    ev->newLen = ev->oldLen = 0;
    chain = top ? getHeld(th, top - 1) : 0;
    ev->root = chain ? findChainRoot(c, th, chain) : 0;
    if (top > 1 && ev->root == a->precord) { /* dbPutField() in a routine took one more lock set for this put */
        chain = getHeld(th, top - 2);
        ev->root = findChainRoot(c, th, chain);
    }
    /* in a pass with chains that are not timed, "begin" is that of the pass */
    ev->begin = chain && !isInUntimedPass(c, chain) ? chain->begin : 0;
    ev->source.begin = ev->cpLink = 0;
    if (top == 1) {
        ev->source = th->from.source;
        ev->cpLink = getCpLink(th);
    }
    ev->locked = kind == EBPFMON_PUT_VALUE && top == 1 && ev->root == a->precord && !th->locked.id &&
                 !th->putDepth && !isInUntimedPass(c, getHeld(th, 0));
    ev->channel[0] = 0;
    asked = fillWriter(c, th, a, ev->addr);
    /* the DBADDR is a part of a dbChannel, which has the name */
    if (c->conf->chanAddr && (asked || ev->who.peer.addr || isCaLinkThread(ev->who.comm)))
        bpf_probe_read_user_str(ev->channel, sizeof(ev->channel), (void *)readPtr(addrAt - c->conf->chanAddr));
    if (!asked && ev->root)
        sendCause(c, th, ev->root);
}

/* Copies "len" bytes from the IOC to place "at" of the event's data. Returns how many bytes were copied. */
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

/* Reads the old value of a field that is no array. */
static __always_inline void readOldScalar(struct thread *th, const struct addr *a)
{
    if (a->nElements == 1 && a->fieldType < EBPFMON_DBF_INLINK)
        th->ev.oldLen = readData(th, 0, a->pfield, (__u16)a->fieldSize);
}

static __always_inline void sendPut(struct thread *th, __u64 wakeup)
{
    __u64 n = th->ev.oldLen + th->ev.newLen;

    n &= 4 * EBPFMON_VAL_MAX - 1; /* for the verifier; n is at most half of that */
    barrier_var(n);
    sendEvent(&th->ev, sizeof(th->ev) + n, wakeup);
}

#endif
