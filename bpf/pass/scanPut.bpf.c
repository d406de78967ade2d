// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Puts that may move a record to another scan list, or to another place in its list (SCAN, PHAS, EVNT, PRIO). The user
 * part reads the lists again when no such put is under way (ebpfMonPassNotes). Until then no sweep may look at the
 * record after a pass of its new list. And scanList() (dbScan.c) chooses a record before it requests its lock: so the
 * old list may still process the record, besides the new one, and a sweep counts two processings as one. So the
 * record, and all that it makes process, are counted up to now and then marked as lower bounds. (The user part marks
 * the records that it finds in other lists than before.)
 *
 * After a put to PHAS the pass may go on from an earlier place of its list, and process the records from there a second
 * time. So all counts of the IOC are lower bounds then.
 */
#include "ebpfMonBase.h"
#include "pass/look.bpf.h"
#include "pass/scanPut.bpf.h"
#include "pass/sweep.bpf.h"

static __always_inline void markRecord(const struct caller *c, struct ebpfMonPassNotes *notes, __u64 precord,
                                       __u64 now)
{
    struct ebpfMonRecState *st;
    __u32 slot;

    if (!findSlot(c->tgid, precord, &slot) || !(st = findState(slot)))
        return;
    ebpfmon_sweep_closure(slot, now, SWEEP_LOCKED);
    st->unsure = 1;
    __sync_fetch_and_add(&notes->unsure, 1);
}

__attribute__((noinline)) int ebpfmon_begin_scan_put(__u64 precord, __u64 pfield, __u64 now)
{
    struct ebpfMonPassNotes *notes;
    struct groupThread *gt;
    struct caller c;

    if (!findCaller(&c) || !c.conf->sweeps || !(notes = bpf_map_lookup_elem(&passNotes, &c.tgid)))
        return 0;
    gt = getGroupThread(c.tid);
    if (!gt || pfield == precord + c.conf->phas)
        noteMissed(c.tgid);
    if (gt) {
        if (gt->scanPutsSweeps != c.conf->sweeps)
            gt->scanPuts = 0;
        gt->scanPutsSweeps = c.conf->sweeps;
        gt->scanPuts++;
    }
    __sync_fetch_and_add(&notes->putsBegun, 1);
    if (!gt) /* its end will not be known */
        __sync_fetch_and_add(&notes->putsDone, 1);
    markRecord(&c, notes, precord, now);
    return 0;
}

__attribute__((noinline)) int ebpfmon_end_scan_puts(__u64 now)
{
    struct ebpfMonPassNotes *notes;
    struct groupThread *gt;
    struct caller c;
    __u32 count;

    if (!findCaller(&c) || !(gt = bpf_map_lookup_elem(&groupThreads, &c.tid)) || !(count = gt->scanPuts))
        return 0;
    gt->scanPuts = 0;
    if (gt->scanPutsSweeps != c.conf->sweeps || !(notes = bpf_map_lookup_elem(&passNotes, &c.tgid)))
        return 0;
    noteStretchPutAt(c.conf->iocId, now); /* device support may have taken long to tell the new list */
    __sync_fetch_and_add(&notes->putsDone, count);
    return 0;
}

__attribute__((noinline)) int ebpfmon_note_unseen_put(__u32 tgid)
{
    struct ebpfMonPassNotes *notes = bpf_map_lookup_elem(&passNotes, &tgid);

    if (!notes)
        return 0;
    __sync_fetch_and_add(&notes->putsBegun, 1);
    __sync_fetch_and_add(&notes->putsDone, 1);
    return 0;
}
