/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "put/joinMatch.h"

#define PUBLISHED_MAX 4096 /* of one circuit */

/* Hash of the record's name, with which the name of a channel begins. */
static uint32_t hashRecordName(const char *channel)
{
    return ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, channel, ebpfMonPutGetRecordLength(channel));
}

static void removePublished(ebpfMonJoinCircuit *c, unsigned i)
{
    memmove(&c->published[i], &c->published[i + 1], (--c->publishedCount - i) * sizeof(*c->published));
}

static void growPublished(ebpfMonJoinCircuit *c)
{
    unsigned room = c->publishedRoom ? 4 * c->publishedRoom : 16;
    ebpfMonJoinPublished *more = realloc(c->published, room * sizeof(*more));

    if (more) {
        c->published = more;
        c->publishedRoom = room;
    }
}

void ebpfMonJoinPublishedAdd(ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put)
{
    ebpfMonJoinCircuit *c = key->peer.sport ? ebpfMonJoinCircuitsGet(circuits, &key->peer, key->at) : NULL;

    if (c && c->publishedCount == c->publishedRoom && c->publishedRoom < PUBLISHED_MAX)
        growPublished(c);
    if (!c || !c->publishedRoom)
        return;
    if (c->publishedCount == c->publishedRoom) {
        c->hasForgotten = 1;
        c->forgottenUpTo = c->published[0].seq;
        removePublished(c, 0);
    }
    c->published[c->publishedCount++] = (ebpfMonJoinPublished){
        .at = key->at,
        .seq = key->seq,
        .seqFrom = key->seqFrom,
        .name = hashRecordName(put->channel[0] ? put->channel : put->pv),
        .isShared = key->seqKind == EBPFMON_SEQ_SHARED,
        .isNumber = put->isNumber,
        .number = put->number,
    };
    if (key->seqKind == EBPFMON_SEQ_SHARED && key->at > circuits->lastShared)
        circuits->lastShared = key->at;
    if (key->seqKind == EBPFMON_SEQ_MESSAGE) /* else other messages may lie before this number */
        ebpfMonJoinCircuitSetServed(c, key->seq);
}

/* What the IOC did before this packet came is of another put, or of an earlier circuit from the same port; what it
 * served of messages before this one needs no packet any more, unless it may be of another circuit. */
static void forgetOld(ebpfMonJoinCircuit *c, uint32_t seq, uint64_t at)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < c->publishedCount; i++)
        if (c->published[i].at + EBPFMON_JOIN_STALE_NS >= at &&
            (c->published[i].isShared || !ebpfMonJoinIsBefore(c->published[i].seq, seq)))
            c->published[kept++] = c->published[i];
    c->publishedCount = kept;
}

/* Of a PVA put the IOC tells what was received with its end, see findReceived. */
static int isPublished(const ebpfMonJoinPublished *p, const ebpfMonWireEvent *ev, uint32_t name)
{
    if (ev->name[0] && p->name != name)
        return 0;
    if (ev->protocol != ebpfMonWirePva)
        return p->seq - ev->seq < EBPFMON_JOIN_HEADER; /* as findMessage */
    return (p->isShared || ebpfMonJoinIsReceived(p->seqFrom, p->seq, ev->end)) &&
           (!p->isNumber || !ev->isNumber || ebpfMonJoinIsSameNumber(p->number, ev->number));
}

/* Looks in the list of this circuit. A PVA group makes several puts in the IOC, with the names of its members. */
static int takeOwn(ebpfMonJoinCircuit *c, const ebpfMonWireEvent *ev, uint64_t at)
{
    int isPva = ev->protocol == ebpfMonWirePva, isGroup = 0;
    uint32_t name = hashRecordName(ev->name);

    if (c->hasForgotten && !ebpfMonJoinIsBefore(c->forgottenUpTo, ev->seq))
        return 1;
    c->hasForgotten = 0;
    forgetOld(c, isPva ? ev->end : ev->seq, at);
    for (unsigned i = 0; i < c->publishedCount; i++)
        if (isPublished(&c->published[i], ev, name)) {
            removePublished(c, i);
            return 1;
        }
    for (unsigned i = isPva ? c->publishedCount : 0; i-- > 0;) {
        if (c->published[i].seq != ev->end)
            continue;
        removePublished(c, i);
        isGroup = 1;
    }
    return isGroup;
}

/* It was published as a put of another circuit of the same thread. */
static int takeShared(ebpfMonJoinCircuits *circuits, const ebpfMonWireEvent *ev, uint64_t at)
{
    uint32_t name = hashRecordName(ev->name);
    unsigned n = 0;

    if (ev->protocol != ebpfMonWirePva || circuits->lastShared + EBPFMON_JOIN_STALE_NS < at)
        return 0;
    for (ebpfMonJoinCircuit *c = circuits->newest; c && n < EBPFMON_JOIN_OTHERS; c = c->older, n++) {
        if (!ebpfMonJoinIsSameServer(&c->peer, &ev->peer))
            continue;
        for (unsigned i = 0; i < c->publishedCount; i++)
            if (c->published[i].isShared && c->published[i].name == name &&
                c->published[i].at + EBPFMON_JOIN_STALE_NS >= at && isPublished(&c->published[i], ev, name)) {
                removePublished(c, i);
                return 1;
            }
    }
    return 0;
}

int ebpfMonJoinPublishedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *circuit, const ebpfMonWireEvent *ev,
                             uint64_t at)
{
    if (!takeOwn(circuit, ev, at) && !takeShared(circuits, ev, at))
        return 0;
    ebpfMonJoinCircuitConfirm(circuit, ev->circuit, ev->stretch, ev->seq);
    return 1;
}
