/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "put/joinMatch.h"
#include "wire/caType.h"

static int hasSameRecord(const char *channel, const char *name)
{
    size_t n = ebpfMonPutGetRecordLength(channel);

    return n == ebpfMonPutGetRecordLength(name) && strncmp(channel, name, n) == 0;
}

/* Whether this put is to a channel that writes to this PV: RECORD, RECORD.FIELD, with modifiers and filters. The name
 * is not known of a channel that was created before we looked: that may be any. */
static int isPutTo(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    return !p->isCall && (!p->channel[0] || hasSameRecord(p->channel, put->pv) ||
                          (put->channel[0] && hasSameRecord(p->channel, put->channel)));
}

static int isReceived(const ebpfMonMessageKey *key)
{
    return key->seqKind == EBPFMON_SEQ_RECEIVED || key->seqKind == EBPFMON_SEQ_SHARED;
}

static int isSameValue(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    return !p->isNumber || !put->isNumber || ebpfMonJoinIsSameNumber(p->number, put->number);
}

/* Not known is not the same. */
static int hasSameValue(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    if (p->isNumber && put->isNumber)
        return ebpfMonJoinIsSameNumber(p->number, put->number);
    return !p->isNumber && !put->isNumber && strcmp((const char *)p->data, put->val) == 0;
}

/* A PVA put; or a CA put that the thread began to serve before it had the probe of CA messages, when the IOC was found.
 * The message ends within what the thread has received last. If several of these messages are puts to this
 * record the value decides, because not each of them need have made a put in the IOC: one that only sets a display
 * field, or is refused, does not. Among equal ones, or if no value agrees, it is the first that was not refused. */
static void findReceived(const ebpfMonMessageKey *key, const ebpfMonPut *put, ebpfMonJoinMatch *match)
{
    for (ebpfMonPacketPut *p = ebpfMonJoinCircuitSkip(match->circuit, key->seqFrom); p; p = p->next) {
        if (!p->closed && ebpfMonJoinIsBefore(key->seq, p->end))
            break;
        if (!isPutTo(p, put) || !ebpfMonJoinIsReceived(key->seqFrom, key->seq, p->end))
            continue;
        if (!hasSameValue(p, put) && (match->put || (p->replied && !p->ok)))
            continue;
        match->put = p;
        if (hasSameValue(p, put))
            break;
    }
}

static int isOfPut(const ebpfMonPacketPut *p, const void *put)
{
    return isPutTo(p, put);
}

/* The name counts, too: a chain that a put starts may write in the same thread before the put is done, and this put
 * has the same message. The number may be higher than that of its first byte: urgent bytes within the message have
 * numbers, and the server does not get them. */
static void findMessage(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                        ebpfMonJoinMatch *match)
{
    const ebpfMonPacketPut *last = match->circuit->last;

    for (uint32_t urgent = 0; urgent < EBPFMON_JOIN_HEADER && !match->put; urgent++)
        match->put = ebpfMonJoinCircuitsFindSeq(circuits, match->circuit, key->seq - urgent, isOfPut, put);
    match->isPast = !match->put && last && !last->closed && ebpfMonJoinIsBefore(key->seq, last->seq);
}

/* Nonzero: "p" was published long ago, and may be of an earlier circuit with the same port. Then only the sequence
 * number of its message can join it. */
static int isOld(const ebpfMonPacketPut *p)
{
    return p->isPublished && p->inside;
}

/* In the queue of match->circuit, in its order. */
static void findInQueue(const ebpfMonMessageKey *key, const ebpfMonPut *put, ebpfMonJoinMatch *match)
{
    for (ebpfMonPacketPut *p = match->circuit->first; p; p = p->next) {
        int isFound;

        if (isOld(p))
            continue;
        if (key->seqKind == EBPFMON_SEQ_SHARED) {
            /* several clients of one thread may put to the same PV, but seldom the same number */
            if (!p->closed && ebpfMonJoinIsBefore(key->seq, p->end))
                return;
            isFound = p->pva && !ebpfMonJoinIsBefore(key->seq, p->end) && isPutTo(p, put) &&
                      isSameValue(p, put) && !(p->replied && !p->ok);
        } else {
            /* a write-notify that waited for its record: the put was made by another thread, in another message; or
             * what the thread received was not seen, because the IOC has just been found */
            isFound = isPutTo(p, put) &&
                      (p->replyAsked || (key->peer.sport && !p->pva && p->at <= key->at && isSameValue(p, put)));
        }
        if (isFound) {
            match->put = p;
            return;
        }
    }
}

/* A PVA group is one put in packets and several puts in the IOC, which have the names of its members. The bytes that
 * the thread has received may end in another put, whose packet is not read yet; so a group that ends before is believed
 * only at last. */
static void findGroup(const ebpfMonMessageKey *key, int last, ebpfMonJoinMatch *match)
{
    int isShared = key->seqKind == EBPFMON_SEQ_SHARED;

    if (!isReceived(key) || (isShared && !last))
        return;
    for (ebpfMonPacketPut *p = isShared ? match->circuit->first : ebpfMonJoinCircuitSkip(match->circuit, key->seqFrom);
         p; p = p->next)
        if (p->pva && !p->isCall &&
            (p->end == key->seq || (last && !p->isPublished && ebpfMonJoinIsBefore(p->end, key->seq))) &&
            (isShared || ebpfMonJoinIsReceived(key->seqFrom, key->seq, p->end)))
            match->put = p;
    match->isGroup = match->put != NULL;
}

/* The first put in the queue of "c" that may be this one of another circuit. */
static ebpfMonPacketPut *findSamePut(const ebpfMonJoinCircuit *c, const ebpfMonMessageKey *key, const ebpfMonPut *put)
{
    for (ebpfMonPacketPut *p = c->first; p; p = p->next)
        if (p->pva && !p->made && !isOld(p) && p->channel[0] && p->at <= key->at + EBPFMON_JOIN_STALE_NS &&
            isPutTo(p, put) && isSameValue(p, put))
            return p;
    return NULL;
}

/* A thread that serves several circuits may receive from all of them before it serves the first (libevent's
 * BEV_OPT_DEFER_CALLBACKS, which pvxs uses): then the last receive was of another client. Finds the one circuit of this
 * server with a put of this value to this PV; if there are two, none. */
static void findInOtherCircuit(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                               ebpfMonJoinMatch *match)
{
    ebpfMonJoinMatch found = { .put = NULL };
    unsigned n = 0;

    for (ebpfMonJoinCircuit *c = circuits->newest; c && n < EBPFMON_JOIN_OTHERS; c = c->older, n++) {
        ebpfMonPacketPut *p;

        if (!ebpfMonJoinIsSameServer(&c->peer, &key->peer) || ebpfMonJoinIsSamePeer(&c->peer, &key->peer) ||
            !(p = findSamePut(c, key, put)))
            continue;
        if (found.put)
            return;
        found = (ebpfMonJoinMatch){ .circuit = c, .put = p };
    }
    if (found.put)
        *match = found;
}

/* A thread that serves several circuits: a put of another circuit of this server may be the one, too, as far as its
 * packets show. */
static int mayBeOther(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                      const ebpfMonJoinMatch *match)
{
    unsigned n = 0;

    for (ebpfMonJoinCircuit *c = circuits->newest; c; c = c->older) {
        if (c == match->circuit || !ebpfMonJoinIsSameServer(&c->peer, &key->peer))
            continue;
        if (++n > EBPFMON_JOIN_OTHERS || (match->isGroup ? c->first != NULL : findSamePut(c, key, put) != NULL))
            return 1;
    }
    return 0;
}

void ebpfMonJoinMatchFind(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
                          int last, ebpfMonJoinMatch *match)
{
    memset(match, 0, sizeof(*match));
    match->circuit = ebpfMonJoinCircuitsFind(circuits, &key->peer);
    if (!match->circuit)
        return;
    if (key->seqKind == EBPFMON_SEQ_RECEIVED)
        findReceived(key, put, match);
    else if (key->seqKind == EBPFMON_SEQ_MESSAGE)
        findMessage(circuits, key, put, match);
    else
        findInQueue(key, put, match);
    if (!match->put && last && key->seqKind == EBPFMON_SEQ_SHARED)
        findInOtherCircuit(circuits, key, put, match);
    if (!match->put)
        findGroup(key, last, match);
    match->isUnsure = match->put && key->seqKind == EBPFMON_SEQ_SHARED && mayBeOther(circuits, key, put, match);
}

void ebpfMonJoinMatchMerge(const ebpfMonPacketPut *p, int isGroup, ebpfMonPut *put)
{
    put->seen |= EBPFMON_SEEN_WIRE;
    put->hash = p->hash;
    if (isGroup)
        snprintf(put->group, sizeof(put->group), "%s", p->channel);
    else if (!put->channel[0] && strcmp(p->channel, put->pv) != 0 &&
             (p->pva || !ebpfMonCaTypeIsAcknowledge(p->dbrType)))
        snprintf(put->channel, sizeof(put->channel), "%s", p->channel);
    if (p->pva || put->through == ebpfMonByPva) { /* in the IOC only the address of such a client is seen */
        if (p->user[0])
            snprintf(put->user, sizeof(put->user), "%s", p->user);
        if (p->host[0])
            snprintf(put->host, sizeof(put->host), "%s", p->host);
    }
    if (!p->pva && put->through == ebpfMonByPva)
        put->through = ebpfMonByCa;
    if (put->result == ebpfMonPutUnknown && p->replied) {
        put->result = p->ok ? ebpfMonPutOk : p->denied ? ebpfMonPutDenied : ebpfMonPutFailed;
        snprintf(put->message, sizeof(put->message), "%s", p->message);
    }
}
