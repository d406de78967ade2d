/* SPDX-License-Identifier: BSD-3-Clause */
#include <epicsMutex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "host/procRead.h"
#include "queues/refusals.h"

#define KEPT_NS (360 * EBPFMON_SECOND_NS) /* clients try again every five minutes (EPICS_CA_MAX_SEARCH_PERIOD) */
#define LOOKS_MAX 20 /* at processes, in a second */

struct ebpfMonRefusals {
    epicsMutexId lock;
    unsigned count;
    ebpfMonRefusal at[EBPFMON_REFUSALS_MAX];
    uint64_t second;        /* the packet thread's own: this second … */
    unsigned looks;         /* … and so many looks in it */
};

ebpfMonRefusals *ebpfMonRefusalsNew(void)
{
    ebpfMonRefusals *r = calloc(1, sizeof(*r));

    if (r)
        r->lock = epicsMutexMustCreate();
    return r;
}

static int isSameHost(const ebpfMonRefusal *a, ebpfMonSearchProtocol protocol, const ebpfMonWireEvent *ev)
{
    return a->protocol == protocol && a->peer.addr == ev->peer.addr && a->peer.netns == ev->peer.netns &&
           memcmp(a->peer.addr6, ev->peer.addr6, sizeof(a->peer.addr6)) == 0;
}

/* Under the lock. */
static void forgetRefusal(ebpfMonRefusals *r, unsigned i)
{
    r->at[i] = r->at[--r->count];
}

static void noteMade(ebpfMonRefusals *r, ebpfMonSearchProtocol protocol, const ebpfMonWireEvent *ev)
{
    char name[EBPFMON_SEARCH_NAME_SIZE];

    ebpfMonTextCopy(name, sizeof(name), ev->name ? ev->name : "");
    epicsMutexMustLock(r->lock);
    for (unsigned i = r->count; i-- > 0;)
        if (isSameHost(&r->at[i], protocol, ev) && strcmp(r->at[i].name, name) == 0)
            forgetRefusal(r, i);
    epicsMutexUnlock(r->lock);
}

/* The place for this refusal, under the lock: the one before of the same client, or the oldest. */
static ebpfMonRefusal *findPlace(ebpfMonRefusals *r, const ebpfMonRefusal *refusal, const ebpfMonWireEvent *ev)
{
    ebpfMonRefusal *oldest = &r->at[0];

    for (unsigned i = 0; i < r->count; i++) {
        if (isSameHost(&r->at[i], refusal->protocol, ev) && r->at[i].client == refusal->client &&
            strcmp(r->at[i].name, refusal->name) == 0)
            return &r->at[i];
        if (r->at[i].last < oldest->last)
            oldest = &r->at[i];
    }
    if (r->count < EBPFMON_REFUSALS_MAX)
        oldest = &r->at[r->count++];
    oldest->first = refusal->last;
    return oldest;
}

static void noteRefused(ebpfMonRefusals *r, ebpfMonPutClients *clients, ebpfMonSearchProtocol protocol,
                        const ebpfMonWireEvent *ev)
{
    uint64_t now = ebpfMonClockReal(), first;
    ebpfMonRefusal refusal = { .protocol = protocol, .peer = ev->peer, .last = now };
    ebpfMonPutClient who;
    ebpfMonRefusal *to;

    if (!ev->name || !ev->name[0])
        return;
    if (now / EBPFMON_SECOND_NS != r->second) {
        r->second = now / EBPFMON_SECOND_NS;
        r->looks = 0;
    }
    if (r->looks++ >= LOOKS_MAX)
        return;
    ebpfMonPutClientsFind(clients, &ev->peer, &ev->first, ev->user, ev->host, &who);
    ebpfMonTextCopy(refusal.name, sizeof(refusal.name), ev->name);
    ebpfMonTextCopy(refusal.message, sizeof(refusal.message), ev->message ? ev->message : "");
    refusal.client = (pid_t)who.peerPid;
    refusal.start = who.peerPid ? ebpfMonProcStart(refusal.client) : 0;
    snprintf(refusal.who, sizeof(refusal.who), "%s@%s (%s)", who.user[0] ? who.user : "?", who.host, who.peer);
    epicsMutexMustLock(r->lock);
    to = findPlace(r, &refusal, ev);
    first = to->first;
    *to = refusal;
    to->first = first;
    epicsMutexUnlock(r->lock);
}

void ebpfMonRefusalsAddEvent(ebpfMonRefusals *r, ebpfMonPutClients *clients, const ebpfMonWireEvent *ev)
{
    ebpfMonSearchProtocol protocol = ev->protocol == ebpfMonWirePva ? ebpfMonSearchPva : ebpfMonSearchCa;

    if (ev->kind == ebpfMonWireRefused)
        noteRefused(r, clients, protocol, ev);
    else if (ev->kind == ebpfMonWireChannel && ev->fromServer)
        noteMade(r, protocol, ev);
}

unsigned ebpfMonRefusalsList(ebpfMonRefusals *r, ebpfMonRefusal list[EBPFMON_REFUSALS_MAX])
{
    uint64_t now = ebpfMonClockReal();
    unsigned count;

    epicsMutexMustLock(r->lock);
    for (unsigned i = r->count; i-- > 0;)
        if (now > r->at[i].last + KEPT_NS)
            forgetRefusal(r, i);
    memcpy(list, r->at, r->count * sizeof(*list));
    count = r->count;
    epicsMutexUnlock(r->lock);
    for (unsigned i = count; i-- > 0;)
        if (list[i].client && !ebpfMonProcLives(list[i].client, list[i].start))
            list[i] = list[--count];
    return count;
}
