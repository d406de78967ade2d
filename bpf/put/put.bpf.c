// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Puts that reach the database. Every write to a field ends in dbPut() (dbAccess.c), except writes to link fields: they
 * end in dbPutFieldLink(), and we see them at dbPutField(). putRefused.bpf.c sees puts that are refused.
 */
#include "chain/lock.bpf.h"
#include "pass/group.bpf.h"
#include "pass/scanPut.bpf.h"
#include "put/putEvent.bpf.h"

/* Finds the elements of an array field. Returns the number of elements of the old value. */
static __always_inline __s64 findElements(__u32 tgid, struct addr *a, struct ebpfMonPutEvent *ev)
{
    struct ebpfMonFieldKey key = { a->pfldDes, tgid };
    __s64 n = a->nElements;
    struct ebpfMonArrayConf *array;
    __u32 count = 0;

    if (n <= 1 && !a->special)
        return n;
    array = bpf_map_lookup_elem(&arrays, &key);
    if (!array) {
        /* dbPut() has not asked the record yet (get_array_info), and what is in the record here is mostly a pointer */
        if (n > 1 && a->special == EBPFMON_SPC_DBADDR && a->pfield - a->precord < EBPFMON_RECORD_MAX)
            a->pfield = 0;
        return n;
    }
    bpf_probe_read_user(&count, sizeof(count), (void *)(a->precord + array->count));
    if (array->ptr)
        a->pfield = readPtr(a->precord + array->ptr);
    if (n > 1) {
        ev->oldCount = count;
        if (n > count)
            n = count;
    }
    return n;
}

/* Notes a put that may change which records a forward link processes, or the time stamps of a record. Then the last
 * record of a stretch may not tell of all (sweep.bpf.c). */
static __always_inline void noteStretchPut(const struct ebpfMonTargetConf *conf, const struct addr *a)
{
    if ((a->fieldType >= EBPFMON_DBF_MENU && a->fieldType <= EBPFMON_DBF_FWDLINK) ||
        a->special == EBPFMON_SPC_SCAN || a->special == EBPFMON_SPC_RESET || a->pfield == a->precord + conf->tse)
        noteStretchPutAt(conf->iocId, bpf_ktime_get_ns());
}

/* In dbPutField(), dbPut() is the first thing after dbScanLock(). So here the thread has the lock whose request was
 * noted at the entry of dbPutField(). Before kernel 5.17 no passes are watched. */
static __always_inline void seePassPut(__u64 paddr, __u64 now)
{
#ifndef EBPFMON_OLD_KERNEL
    __s16 special = 0;
    struct caller c;
    __u64 precord;

    if (!findCaller(&c) || !c.conf->sweeps || !(precord = readPtr(paddr + EBPFMON_DbAddr_precord)))
        return;
    ebpfmon_enter_put(precord, now);
    bpf_probe_read_user(&special, sizeof(special), (void *)(paddr + EBPFMON_DbAddr_special));
    if (special == EBPFMON_SPC_SCAN)
        ebpfmon_begin_scan_put(precord, readPtr(paddr + EBPFMON_DbAddr_pfield), now);
#endif
}

/* A global function, so that its stack is not added to that of seePassPut(). "sp": the stack pointer. */
__attribute__((noinline)) int ebpfmon_see_put(__u64 paddr, __u64 dbrType, __u64 pbuffer, __s64 nRequest, __u64 sp)
{
    struct ebpfMonPutEvent *ev;
    struct thread *th;
    struct inPut *in;
    struct caller c;
    struct addr a;
    __u32 depth;
    int failed;
    __s64 n;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY))
        return 0;
    failed = readAddr(c.conf, &a, paddr);
    if (!failed)
        noteStretchPut(c.conf, &a);
    if (!(th = getThread(c.tid)))
        return 0;
    depth = th->putDepth;
    if (depth >= EBPFMON_NESTED)
        depth = 0; /* the probe at the return was being detached, and missed some returns */
    in = &th->pending[depth & (EBPFMON_NESTED - 1)];
    in->sp = sp;
    if (failed) {
        countLost(EBPFMON_LOST_FAULT);
        in->id = 0; /* its return must not be mistaken for the return of the put around it */
        th->putDepth = depth + 1;
        return 0;
    }
    fillPutEvent(&c, th, &a, paddr, EBPFMON_PUT_VALUE);
    ev = &th->ev;
    if (!depth && !th->locked.id) {
        th->put.precord = a.precord;
        th->put.pfldDes = a.pfldDes;
        th->put.who = ev->who;
        th->put.number = (__u32)ev->id;
    }
    ev->dbrType = convertType(c.conf, (__s16)dbrType);
    ev->nRequest = nRequest;
    n = findElements(c.tgid, &a, ev);
    if (n < 0)
        n = 0;
    ev->oldLen = readData(th, 0, a.pfield, (__u64)n * (__u16)a.fieldSize); /* the record still has the old value */
    if (nRequest > 0)
        ev->newLen = readData(th, ev->oldLen, pbuffer, (__u64)nRequest * getElementSize(ev->dbrType));
    in->id = ev->id;
    in->pfield = a.pfield;
    in->size = a.nElements == 1 && a.fieldType < EBPFMON_DBF_INLINK ? (__u16)a.fieldSize : 0;
    in->locked = ev->locked;
    th->putDepth = depth + 1;
    sendPut(th, BPF_RB_NO_WAKEUP);
    return 0;
}

/* long dbPut(DBADDR *paddr, short dbrType, const void *pbuffer, long nRequest) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_put, __u64 paddr, __u64 dbrType, __u64 pbuffer, __s64 nRequest)
{
    RUN_TIMED({
        seePassPut(paddr, now);
        ebpfmon_see_put(paddr, dbrType, pbuffer, nRequest, PT_REGS_SP(ctx));
    });
}

static __always_inline void endPut(__s64 status, __u64 sp)
{
    struct caller c;
    struct thread *th;
    struct inPut *in;
    __u32 depth;

    if (!findCaller(&c))
        return;
    th = bpf_map_lookup_elem(&threads, &c.tid);
    if (!th || th->putDepth == 0)
        return;
    depth = th->putDepth - 1;
    in = &th->pending[depth & (EBPFMON_NESTED - 1)];
    /* A return probe that is a perf event is called once for each process that has one on this file: with two IOCs,
     * twice for one return (seen on 5.10, 6.1 and 6.12, not on 7.3). The second call is not the return of the put
     * around this one. */
    if (depth < EBPFMON_NESTED && sp < in->sp)
        return;
    countHits(&c, EBPFMON_HIT_RETURN, 1);
    th->putDepth = depth;
    if (depth >= EBPFMON_NESTED || !in->id)
        return;
    if (in->locked && !status) {
        th->locked = *in;
        th->lockedStatus = 0;
    } else {
        sendResult(&c, in, status);
    }
}

SEC("uprobe")
int BPF_URETPROBE(ebpfmon_put_return, __s64 status)
{
    RUN_TIMED(endPut(status, PT_REGS_SP(ctx)));
}

/* Reads the PV to which a link field led before the put. */
static __always_inline void readOldLink(const struct ebpfMonTargetConf *conf, struct thread *th, __u64 pfield)
{
    struct ebpfMonPutEvent *ev = &th->ev;
    __u64 name;
    long n;

    bpf_probe_read_user(&ev->linkType, sizeof(ev->linkType), (void *)(pfield + conf->linkType));
    if (ev->linkType == EBPFMON_LINK_PV ||
        (ev->linkType >= EBPFMON_LINK_PN && ev->linkType <= EBPFMON_LINK_CA)) {
        bpf_probe_read_user(&ev->linkMask, sizeof(ev->linkMask), (void *)(pfield + conf->linkPvlMask));
        name = readPtr(pfield + conf->linkPvname);
    } else {
        name = readPtr(pfield + conf->linkValue);
    }
    if (!name)
        return;
    n = bpf_probe_read_user_str(th->data, EBPFMON_VAL_MAX, (void *)name);
    ev->oldLen = n > 0 && n <= EBPFMON_VAL_MAX ? n : 0;
}

/* Sends a put to a link field, or to a record whose DISP refuses writes from outside. */
static __always_inline void sendFieldPut(const struct caller *c, struct addr *a, __u64 paddr, __u64 dbrType,
                                         __u64 pbuffer, __s64 nRequest, int disabled)
{
    struct thread *th = getThread(c->tid);
    struct ebpfMonPutEvent *ev;
    int isLink = isLinkField(a);

    if (!th)
        return;
    fillPutEvent(c, th, a, paddr, disabled ? EBPFMON_PUT_DISABLED : EBPFMON_PUT_LINK);
    ev = &th->ev;
    ev->dbrType = convertType(c->conf, (__s16)dbrType);
    ev->nRequest = nRequest;
    if (isLink)
        readOldLink(c->conf, th, a->pfield);
    else if (a->nElements == 1)
        ev->oldLen = readData(th, 0, a->pfield, (__u16)a->fieldSize);
    if (nRequest > 0)
        ev->newLen = readData(th, ev->oldLen, pbuffer, (__u64)nRequest * getElementSize(ev->dbrType));
    th->putsLink |= isLink;
    /* a changed link changes which records a chain can reach, so the user part must learn it at once */
    sendPut(th, isLink ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void seePutField(struct pt_regs *ctx, __u64 paddr, __u64 dbrType, __u64 pbuffer,
                                        __s64 nRequest, __u64 now)
{
    struct caller c;
    struct addr a;
    int disabled;

    if (!enterProbe(&c, EBPFMON_HIT_ENTRY) || readAddr(c.conf, &a, paddr))
        return;
    noteStretchPut(c.conf, &a);
    disabled = isDisabled(c.conf, &a);
    if (disabled || isLinkField(&a))
        sendFieldPut(&c, &a, paddr, dbrType, pbuffer, nRequest, disabled);
    else if (c.conf->isPutLockSeen && a.special != EBPFMON_SPC_ATTRIBUTE)
        ebpfmon_request_put_lock(a.precord, PT_REGS_SP(ctx), now);
}

/* long dbPutField(DBADDR *paddr, short dbrType, const void *pbuffer, long nRequest): puts to link fields, puts to
 * records whose DISP refuses writes from outside; and it requests the lock of the record for all others. */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_putfield, __u64 paddr, __u64 dbrType, __u64 pbuffer, __s64 nRequest)
{
    RUN_TIMED(seePutField(ctx, paddr, dbrType, pbuffer, nRequest, now));
}
