// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * A record writes through a CA link. dbCaPutLinkCallback() (dbCa.c) runs in the record's own chain. Later, the thread
 * dbCaLink sends the value. That thread does not know which chain wrote it.
 */
#include "put/putEvent.bpf.h"

/* dbCaPutLinkCallback(struct link *, …) */
SEC("uprobe")
int BPF_UPROBE(ebpfmon_calink, __u64 link)
{
    struct ebpfMonCauseEvent *ev, *known = 0;
    struct ebpfMonHeld *h;
    struct thread *th;
    struct caller c;

    KEEP_THREAD_STACK(ctx);
    if (isTakenAway(ctx) || !enterProbe(&c, EBPFMON_HIT_ENTRY) || !(th = getThread(c.tid)))
        return 0;
    ev = &th->cause;
    h = c.conf->level >= EBPFMON_CHAINS ? getLastHeld(th) : 0;
    ev->root = h ? findChainRoot(&c, th, h) : 0;
    if (!th->client && ev->root)
        known = findCause(c.tgid, ev->root);
    if (known) {
        ev->sourceBegin = known->begin;
        ev->sourceTid = known->head.tid;
        ev->who = known->who;
        ev->root = known->root;
        ev->byMain = known->byMain;
        ev->cpLink = known->cpLink;
    } else {
        ev->sourceBegin = 0;
        ev->byMain = c.tid == c.tgid;
        ev->cpLink = h ? getCpLink(th) : 0;
        readChainClient(&ev->who, &c, th, ev->root);
    }
    fillHead(&ev->head, &c, EBPFMON_EV_CALINK, bpf_ktime_get_ns());
    ev->begin = h ? h->begin : 0;
    ev->link = link;
    ev->name[0] = 0;
    bpf_probe_read_user_str(ev->name, sizeof(ev->name), (void *)readPtr(link + c.conf->linkPvname));
    sendEvent(ev, sizeof(*ev), BPF_RB_NO_WAKEUP);
    return 0;
}
