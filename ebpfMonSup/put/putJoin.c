/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <epicsMutex.h>
#include <stdint.h>
#include <stdio.h>

#include "ebpfMonEvent.h"
#include "put/joinCircuits.h"
#include "put/putJoin.h"
#include "watch/target.h"
#include "wire/caType.h"

/* --- puts that are seen in packets only ---
 *
 * Finds packets whose puts will not be seen in an IOC any more. Of these it decides which puts were sent for certain.
 * Used by putJoin only, under its lock. */

/* Input and output of one look. Times are monotonic ns. */
typedef struct {
    ebpfMonTargets *targets;    /* NULL: each put to an IOC is seen inside */
    uint64_t        now;        /* UINT64_MAX: the end; no put waits any longer */
    uint64_t        eventsRead; /* all puts of IOCs from before that were read, and asked for their packets */
    uint64_t        packetsRead; /* all packets from before that were read */
    uint64_t        due;        /* found: when to look again; UINT64_MAX: not because of the time */
    uint64_t        events;     /* found: events must be read up to then; UINT64_MAX: none waits for that */
} ebpfMonJoinLook;

/* How long a put that was seen in packets waits at most. */
#define SENT_NS   50000000ull    /* for the error reply to a plain CA write: it comes by then, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for */
/* Time limits for the same put in an IOC in which each put is seen. They count from the last thing that the IOC did
 * about it, in events that were read. */
#define REFUSED_NS (2 * SENT_NS) /* once the IOC has refused it: some refusals are seen in the IOC, too */
#define MADE_NS   2500000000ull  /* … has replied, or has served later messages: the put may wait there 2 s for its
                                    result (iocPuts.c) */
#define CLOSED_NS 10000000000ull /* … once the circuit is closed: a slow IOC still reads what came before */
#define STUCK_NS  3600000000000ull /* … if it does none of that: it hangs, is stopped by a debugger, or the put is a
                                    write-notify, which waits for its record: a motor moves for minutes (dbNotify.c) */

#define KEPT_NS   10000000000ull /* a put is kept for so long after it was published: a slow IOC may make it only
                                     * then, when its probes are attached; STUCK_NS if they were: the IOC may be
                                     * stopped by a debugger */
#define PUBLISHED_MAX  4096
#define AGAIN_NS  1000000ull /* to the next look, when not all packets were read */
#define ASK_NS    250000000ull /* between two questions whether the server has read what came */

/* Learns whether the put came after the moment from which each put of its IOC is seen inside. */
static void judgeUnmatched(ebpfMonTargets *targets, ebpfMonPacketPut *p)
{
    uint64_t since;

    if (p->isCall)
        return;
    if (!targets)
        p->inside = p->iocId != 0;
    else if ((p->iocId || p->pid) && !ebpfMonTargetsGetPutsSince(targets, &p->iocId, p->pid, &since))
        p->inside = p->at >= since; /* of an IOC that is forgotten: as it was */
}

/* Notes if the IOC has served a later message of the circuit. */
static void notePassed(const ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, uint64_t now)
{
    if (p->passed || p->closed || !c->hasServed || !ebpfMonJoinIsBefore(p->seq, c->served))
        return;
    p->passed = 1;
    p->since = now;
}

/* When it will not be seen in an IOC any more. *byEvents: up to where we know what the IOC did counts, and not the
 * clock: it, or we, may have stood still. */
static uint64_t findEnd(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p, int *byEvents)
{
    uint64_t wait = p->at + (p->replyAsked ? REPLY_NS : SENT_NS);

    *byEvents = !p->isCall && (p->iocId || c->hasServed);
    if (!*byEvents)
        return p->replied || p->closed ? 0 : wait;
    if (p->iocId && !p->inside) { /* what the IOC did about it before its probes were there, no event will tell */
        if (p->replied)
            return p->since;
        return p->passed || p->closed ? p->since + SENT_NS : wait;
    }
    if (p->replied && !p->ok)
        return p->since + REFUSED_NS;
    if (p->replied || (p->passed && (!p->replyAsked || p->pva)))
        return p->since + MADE_NS;
    if (p->closed && c->madeAt > p->since && c->madeAt - p->since < STUCK_NS)
        return c->madeAt + CLOSED_NS; /* … and while it makes puts of this circuit */
    return p->since + (p->closed ? CLOSED_NS : STUCK_NS);
}

/* A put that waits in the socket of a slow IOC is not lost, whatever else we believe to know. Nonzero: the server had
 * read all that had come at a time after this put; or we waited for that for an hour. */
static int isRead(ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, ebpfMonJoinLook *look)
{
    uint64_t next = (c->askedAt ? c->askedAt : look->now) + ASK_NS;

    p->isUnread = 0;
    if (!p->inside || p->replied || look->now == UINT64_MAX || c->readAt > p->at)
        return 1;
    p->isUnread = 1;
    if (look->now > p->at + STUCK_NS)
        return 1;
    c->askIoc = p->iocId;
    if (next < look->due)
        look->due = next;
    return 0;
}

/* Nonzero: that time has come. Else it is noted when to look again, and whether events must be read first. */
static int isUnmatched(ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, ebpfMonJoinLook *look)
{
    uint64_t end;
    int byEvents;

    notePassed(c, p, look->now);
    judgeUnmatched(look->targets, p);
    end = findEnd(c, p, &byEvents);
    /* a put to nobody of this host may be seen again, in another namespace (packetEvents.h) */
    if (!byEvents && look->now != UINT64_MAX && look->packetsRead < p->since) {
        if (look->now + AGAIN_NS < look->due)
            look->due = look->now + AGAIN_NS;
        return 0;
    }
    if ((byEvents && look->now != UINT64_MAX ? look->eventsRead : look->now) >= end)
        return isRead(c, p, look);
    if (end <= look->now && end < look->events)
        look->events = end;
    else if (end > look->now && end < look->due)
        look->due = end;
    return 0;
}

/* Bytes behind a gap may look like a message, and somebody may send packets of his own with the numbers of a circuit. A
 * put that a watched IOC has made is seen inside, with its name: so without one, only a refused put is shown. */
static int isCertain(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p)
{
    if (!p->inside || (p->replied && !p->ok))
        return 1;
    return p->channel[0] && (!p->stretch || p->replied ||
                             (c->confirmedCircuit == p->circuit && c->confirmedStretch == p->stretch &&
                              !ebpfMonJoinIsBefore(p->seq, c->confirmedFrom)));
}

/* A plain write waits a short time only, so those behind it wait too and all stay in order. A write-notify may be
 * answered in an hour. */
static int holdsOthers(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p)
{
    return !p->replyAsked && (p->iocId ? !p->inside : !c->hasServed);
}

/* It was published at p->since. Nonzero: it is kept no longer. */
static int isForgotten(const ebpfMonPacketPut *p, ebpfMonJoinLook *look)
{
    uint64_t end = p->since + (p->inside && !p->replied && !p->passed ? STUCK_NS : KEPT_NS);

    if (look->now < end && end < look->due)
        look->due = end;
    return look->now >= end;
}

/* A slow IOC may make the put still. If it does after the put was published, it finds it here, and is not published
 * again. Returns the put to publish. */
static ebpfMonPacketPut *takeOut(ebpfMonJoinCircuits *circuits, ebpfMonPacketPut *p, ebpfMonJoinLook *look)
{
    ebpfMonPacketPut *copy = NULL;

    if (p->iocId && !p->made && !p->isDoubtful && circuits->published < PUBLISHED_MAX && look->now != UINT64_MAX)
        copy = malloc(sizeof(*copy) + p->have);
    if (!copy) {
        ebpfMonJoinCircuitsRemovePut(circuits, p);
        return p;
    }
    memcpy(copy, p, sizeof(*copy) + p->have);
    copy->isTaken = p->isTaken = 1;
    ebpfMonJoinCircuitsSetPublished(circuits, p);
    p->since = look->now;
    isForgotten(p, look);
    return copy;
}

/* Takes those of one circuit. "end": of the list, which grows. Returns its end. */
static ebpfMonPacketPut **takeOfCircuit(ebpfMonJoinCircuits *circuits, ebpfMonJoinCircuit *c, ebpfMonJoinLook *look,
                                        ebpfMonPacketPut **end)
{
    ebpfMonPacketPut *p = c->first, *next;

    for (; p; p = next) {
        next = p->next;
        if (p->isPublished) {
            if (isForgotten(p, look)) {
                ebpfMonJoinCircuitsRemovePut(circuits, p);
                free(p);
            }
            continue;
        }
        if (!isUnmatched(c, p, look)) {
            if (holdsOthers(c, p))
                break;
            continue;
        }
        if (p->made && (!p->replied || p->ok || p->told)) {
            ebpfMonJoinCircuitsRemovePut(circuits, p);
            free(p);
            continue;
        }
        p->isDoubtful = !isCertain(c, p);
        p = takeOut(circuits, p, look);
        p->next = NULL;
        *end = p;
        end = &p->next;
    }
    return end;
}

/* A circuit of which must be known whether its server has read all that came, and that was not asked just now. NULL:
 * none. */
static ebpfMonJoinCircuit *getAsked(const ebpfMonJoinCircuits *circuits, uint64_t now)
{
    ebpfMonJoinCircuit *found = NULL;

    for (ebpfMonJoinCircuit *c = circuits->newest; c; c = c->older)
        if (c->askIoc && now >= c->askedAt + ASK_NS && (!found || c->askedAt < found->askedAt))
            found = c;
    return found;
}

/* Takes all such puts out of the queues: a list, which the caller publishes and frees one by one. */
static ebpfMonPacketPut *takeUnmatched(ebpfMonJoinCircuits *circuits, ebpfMonJoinLook *look)
{
    ebpfMonPacketPut *list = NULL, **end = &list;

    look->due = look->events = UINT64_MAX;
    for (ebpfMonJoinCircuit *c = circuits->waiting + circuits->published ? circuits->newest : NULL; c; c = c->older)
        end = takeOfCircuit(circuits, c, look, end);
    return list;
}

/* --- the packet of a put --- */

/* How a put that was seen in packets was found. */
typedef struct {
    ebpfMonJoinCircuit *circuit;
    ebpfMonPacketPut *put;      /* NULL: none */
    int isGroup;                /* a PVA group: the put stays in the queue for its other members */
    int isUnsure;               /* another client may have made the put, too */
    int isPast;                 /* none, and packets behind its message were read already */
} ebpfMonJoinMatch;

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

/* The first put in the queue of "c" that may be this one of another circuit. In a connection that is older than the
 * monitor it has no name. */
static ebpfMonPacketPut *findSamePut(const ebpfMonJoinCircuit *c, const ebpfMonMessageKey *key, const ebpfMonPut *put)
{
    for (ebpfMonPacketPut *p = c->first; p; p = p->next)
        if (p->pva && !p->made && !isOld(p) && p->at <= key->at + EBPFMON_JOIN_STALE_NS && isPutTo(p, put) &&
            isSameValue(p, put))
            return p;
    return NULL;
}

/* A thread that serves several circuits may receive from all of them before it serves the first (libevent's
 * BEV_OPT_DEFER_CALLBACKS, which pvxs uses): then the last receive was of another client. Finds the one circuit of this
 * server with a put of this value to this PV; if there are two, none. One without a name must have the same value. */
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
    if (found.put && (found.put->channel[0] || hasSameValue(found.put, put)))
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

/* Looks for the packet of a put that was seen in the IOC. "last": the put is published now in any case. */
static void findMatch(const ebpfMonJoinCircuits *circuits, const ebpfMonMessageKey *key, const ebpfMonPut *put,
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

/* Copies what only the packet shows of a put. "isGroup": the packet is of its group. */
static void mergePacket(const ebpfMonPacketPut *p, int isGroup, ebpfMonPut *put)
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
    if (put->result == ebpfMonPutUnknown && p->replied && !p->isUnsure) {
        put->result = p->ok ? ebpfMonPutOk : p->denied ? ebpfMonPutDenied : ebpfMonPutFailed;
        snprintf(put->message, sizeof(put->message), "%s", p->message);
    }
}

/* --- both sides --- */

#define LATELY    (16u << 20) /* bytes before the last message that the IOC served */
#define PUTS_MAX  65536  /* in the queues of all circuits */
#define MANY      1024   /* if more puts wait, not all of them are looked at with each packet, but … */
#define LOOK_NS   1000   /* … after a pause of so many ns for each: ten times as long as the look takes */

struct ebpfMonPutJoin {
    ebpfMonTargets     *targets;      /* the caller's; it is locked under our lock, never the reverse */
    ebpfMonPutJoinWakes wakes;        /* set before other threads are there */
    epicsMutexId        lock;         /* guards all that follows */
    ebpfMonJoinCircuits circuits;
    uint64_t            packetsRead;  /* monotonic ns, as the next four */
    uint64_t            eventsRead;
    uint64_t            packetsAwaited; /* the event thread waits until packets up to then are read; 0: it does not */
    uint64_t            eventsAwaited;  /* … the packet thread, for events */
    uint64_t            due;            /* ebpfMonPutJoinGetDue */
    uint64_t            lookAt;         /* not before this time, all puts are looked at again */
    ebpfMonJoinCovered  covered;
};

ebpfMonPutJoin *ebpfMonPutJoinNew(ebpfMonTargets *targets)
{
    ebpfMonPutJoin *join = calloc(1, sizeof(*join));

    if (!join)
        return NULL;
    join->targets = targets;
    join->lock = epicsMutexMustCreate();
    join->due = UINT64_MAX;
    return join;
}

void ebpfMonPutJoinSetWakes(ebpfMonPutJoin *join, const ebpfMonPutJoinWakes *wakes)
{
    join->wakes = *wakes;
}

void ebpfMonPutJoinFree(ebpfMonPutJoin *join)
{
    if (!join)
        return;
    ebpfMonJoinCircuitsForgetAll(&join->circuits);
    epicsMutexDestroy(join->lock);
    free(join);
}

void ebpfMonPutJoinSetCovered(ebpfMonPutJoin *join, const uint32_t *netns, unsigned count, uint64_t now)
{
    epicsMutexMustLock(join->lock);
    ebpfMonJoinCoveredSet(&join->covered, netns, count, now);
    epicsMutexUnlock(join->lock);
}

/* One side has read up to "at". Nonzero: the other side waits for this. Under the lock. */
static int setRead(uint64_t *read, uint64_t *awaited, uint64_t at)
{
    int isAwaited = *awaited && at >= *awaited;

    *read = at;
    if (isAwaited)
        *awaited = 0;
    return isAwaited;
}

/* One side waits until the other side has read up to "until". Nonzero: it did not wait for this before. Under the
 * lock. */
static int awaitRead(uint64_t read, uint64_t *awaited, uint64_t until)
{
    int isNew = read < until && *awaited != until;

    if (isNew)
        *awaited = until;
    return isNew;
}

static void wakeIf(int wanted, const ebpfMonPutJoin *join, void *thread)
{
    if (wanted && join->wakes.wake)
        join->wakes.wake(thread);
}

void ebpfMonPutJoinSetPacketsRead(ebpfMonPutJoin *join, uint64_t at)
{
    int isAwaited;

    epicsMutexMustLock(join->lock);
    isAwaited = setRead(&join->packetsRead, &join->packetsAwaited, at);
    epicsMutexUnlock(join->lock);
    wakeIf(isAwaited, join, join->wakes.events);
}

int ebpfMonPutJoinAwaitPackets(ebpfMonPutJoin *join, uint64_t until)
{
    int isRead, isNew;

    epicsMutexMustLock(join->lock);
    isRead = join->packetsRead >= until;
    isNew = awaitRead(join->packetsRead, &join->packetsAwaited, until);
    epicsMutexUnlock(join->lock);
    wakeIf(isNew, join, join->wakes.packets);
    return isRead;
}

void ebpfMonPutJoinSetEventsRead(ebpfMonPutJoin *join, uint64_t at)
{
    int isAwaited;

    epicsMutexMustLock(join->lock);
    isAwaited = setRead(&join->eventsRead, &join->eventsAwaited, at);
    epicsMutexUnlock(join->lock);
    wakeIf(isAwaited, join, join->wakes.packets);
}

/* Joins the two, and takes the put of the packets out of its queue. */
static void joinMatch(ebpfMonPutJoin *join, const ebpfMonJoinMatch *match, ebpfMonMessageKey *key, ebpfMonPut *put)
{
    ebpfMonPacketPut *p = match->put;

    put->isUnsure = match->isUnsure;
    key->outer = p->outer;
    if (match->isGroup) { /* it stays for the other members */
        mergePacket(p, 1, put);
        p->made = 1;
        p->told |= ebpfMonPutHasFailed(put);
        return;
    }
    key->moved = memcmp(&key->peer, &match->circuit->peer, sizeof(key->peer)) != 0;
    key->peer = match->circuit->peer;
    key->first = p->first;
    key->sentAt = p->pva ? 0 : p->at;
    if (key->moved && p->pva)
        put->user[0] = put->host[0] = 0; /* those of another client */
    mergePacket(p, 0, put);
    ebpfMonJoinCircuitConfirm(match->circuit, p->circuit, p->stretch, p->seq);
    if (key->seqKind != EBPFMON_SEQ_NONE && !p->closed)
        ebpfMonJoinCircuitSetServed(match->circuit, p->seq);
    key->seq = p->seq;
    key->seqKind = match->isUnsure ? EBPFMON_SEQ_SHARED : EBPFMON_SEQ_MESSAGE;
    ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
    free(p);
}

/* Nonzero: no event of the IOC told the result of this put, and its client will get a reply. */
static int awaitsReply(const ebpfMonPacketPut *p, const ebpfMonPut *put)
{
    return put->result == ebpfMonPutUnknown && p->replyAsked && !p->replied && !p->closed;
}

static int isUntold(const ebpfMonPacketPut *p, const void *arg)
{
    return !p->pva && !p->isPublished;
}

/* The IOC tells of this message, and its packet names another channel: somebody has written packets into the connection
 * that the server did not take. The packet is no other put. */
static void noteTold(ebpfMonPutJoin *join, const ebpfMonJoinMatch *match, const ebpfMonMessageKey *key)
{
    ebpfMonPacketPut *p = match->circuit && key->seqKind == EBPFMON_SEQ_MESSAGE ?
                          ebpfMonJoinCircuitsFindSeq(&join->circuits, match->circuit, key->seq, isUntold, NULL) : NULL;

    if (p)
        p->made = p->told = 1;
}

ebpfMonPutJoinResult ebpfMonPutJoinMatchIoc(ebpfMonPutJoin *join, ebpfMonMessageKey *key, ebpfMonPut *put, int last)
{
    ebpfMonPutJoinResult result = ebpfMonPutJoinWait;
    ebpfMonJoinMatch match;
    int isWhole;

    if (!put->peer[0] || ebpfMonPutIsInner(put) || !key->peer.addr)
        return ebpfMonPutJoinAlone;
    epicsMutexMustLock(join->lock);
    if (!ebpfMonJoinCoveredHas(&join->covered, &key->peer)) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinAlone;
    }
    /* whose put it is tell the packets of all clients of this thread */
    isWhole = key->seqKind != EBPFMON_SEQ_SHARED || join->packetsRead >= key->at;
    if (!isWhole && !last) {
        epicsMutexUnlock(join->lock);
        return ebpfMonPutJoinWait;
    }
    findMatch(&join->circuits, key, put, last, &match);
    match.isUnsure |= !isWhole;
    if (match.circuit && key->at > match.circuit->madeAt)
        match.circuit->madeAt = key->at;
    if (match.put && !match.put->isPublished && !last && awaitsReply(match.put, put)) {
        result = ebpfMonPutJoinReply;
    } else if (match.put) {
        result = match.put->isPublished && !match.put->isTaken ? ebpfMonPutJoinPublished : ebpfMonPutJoinFound;
        joinMatch(join, &match, key, put);
    } else if (match.isPast) {
        result = ebpfMonPutJoinAlone;
    }
    if (!match.put && (last || match.isPast))
        noteTold(join, &match, key);
    /* also if it is past: somebody may have written a packet with a later number, and its own comes still */
    if (!match.put && (last || match.isPast) && key->seqKind != EBPFMON_SEQ_NONE)
        ebpfMonJoinPublishedAdd(&join->circuits, key, put);
    epicsMutexUnlock(join->lock);
    return result;
}

/* "p" has room for "have" bytes of data. */
static void fillPacketPut(ebpfMonPacketPut *p, const ebpfMonWireEvent *ev, const ebpfMonOldValue *old, uint64_t at,
                          const void *data, size_t have)
{
    memset(p, 0, sizeof(*p));
    p->at = p->since = at;
    p->time = ev->time;
    p->id = ev->id;
    p->circuit = ev->circuit;
    p->stretch = ev->stretch;
    p->seq = ev->seq;
    p->end = ev->end;
    p->sid = ev->sid;
    p->hash = ev->hash;
    p->count = ev->count;
    p->have = (uint32_t)have;
    p->dbrType = (int16_t)ev->dbrType;
    p->baseType = (int16_t)ev->baseType;
    p->elementSize = (uint8_t)ev->elementSize;
    p->pva = ev->protocol == ebpfMonWirePva;
    p->replyAsked = !!ev->replyAsked;
    p->isNumber = !!ev->isNumber;
    p->isCall = !!ev->isCall;
    p->number = ev->number;
    p->peer = ev->peer;
    p->first = ev->first;
    p->old = *old;
    ebpfMonTextCopy(p->user, sizeof(p->user), ev->user);
    ebpfMonTextMarkClaim(p->user, sizeof(p->user));
    ebpfMonTextCopy(p->host, sizeof(p->host), ev->host);
    ebpfMonTextCopy(p->channel, sizeof(p->channel), ev->name);
    memcpy(p->data, data, have);
}

/* Nonzero: the IOC had served this message when this packet came, so it is a copy. A circuit that was followed from its
 * begin gives each byte once; one that was met in the middle does not know what came before. */
static int isCopy(const ebpfMonJoinCircuit *c, const ebpfMonWireEvent *ev, uint64_t at)
{
    return !(ev->first.seq[0] || ev->first.seq[1]) && c->hasServed && c->served - ev->seq - 1 < LATELY &&
           c->madeAt && at > c->madeAt + EBPFMON_JOIN_STALE_NS;
}

void ebpfMonPutJoinAddPacket(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, uint32_t iocId, pid_t pid,
                             const ebpfMonOldValue *old, uint64_t at)
{
    const void *data = ev->protocol == ebpfMonWirePva ? (const void *)ev->text : ev->data;
    size_t have = ev->protocol == ebpfMonWirePva ? strlen(ev->text) + 1 : ev->have;
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;

    if (ev->protocol == ebpfMonWireCa && have > EBPFMON_PACKET_PUT_DATA)
        have = EBPFMON_PACKET_PUT_DATA;
    p = malloc(sizeof(*p) + have);
    epicsMutexMustLock(join->lock);
    c = p && join->circuits.waiting < PUTS_MAX ? ebpfMonJoinCircuitsGet(&join->circuits, &ev->peer, at) : NULL;
    if (!c) {
        join->circuits.dropped++;
    } else if (ev->isCall || (!isCopy(c, ev, at) && !ebpfMonJoinPublishedTake(&join->circuits, c, ev, at))) {
        fillPacketPut(p, ev, old, at, data, have);
        p->iocId = iocId;
        p->pid = pid;
        p->outer = c->outer;
        judgeUnmatched(join->targets, p);
        ebpfMonJoinCircuitsAddPut(&join->circuits, c, p);
        p = NULL;
    }
    epicsMutexUnlock(join->lock);
    free(p);
}

/* They are copies of those that the inner circuit shows. */
static void dropPuts(ebpfMonPutJoin *join, ebpfMonJoinCircuit *c)
{
    while (c && c->first) {
        ebpfMonPacketPut *p = c->first;

        ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
        free(p);
    }
}

void ebpfMonPutJoinSetOuter(ebpfMonPutJoin *join, const struct ebpfMonPeer *inner, const struct ebpfMonPeer *outer,
                            uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    dropPuts(join, ebpfMonJoinCircuitsFind(&join->circuits, outer));
    c = ebpfMonJoinCircuitsGet(&join->circuits, inner, at);
    if (c)
        c->outer = *outer;
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next)
        p->outer = *outer;
    epicsMutexUnlock(join->lock);
}

int ebpfMonPutJoinAddReply(ebpfMonPutJoin *join, const ebpfMonWireEvent *ev, ebpfMonOldValue *old, uint64_t at)
{
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;
    int found;

    epicsMutexMustLock(join->lock);
    c = ev->id ? ebpfMonJoinCircuitsFind(&join->circuits, &ev->peer) : NULL;
    p = c ? ebpfMonJoinCircuitsFindId(&join->circuits, c, ev->id) : NULL;
    if (p) {
        p->replied = 1;
        p->since = at;
        p->ok = !!ev->ok;
        p->denied = !!ev->denied;
        p->isUnsure = !!ev->isUnsure;
        p->status = ev->status;
        ebpfMonTextCopy(p->message, sizeof(p->message), ev->message ? ev->message : "");
        if (p->isCall) {
            ebpfMonTextCopy(p->returned, sizeof(p->returned), ev->text ? ev->text : "");
            p->took = ev->time > p->time ? ev->time - p->time : 0;
        }
        *old = p->old;
    }
    found = p && !p->isCall;
    epicsMutexUnlock(join->lock);
    return found;
}

void ebpfMonPutJoinCloseCircuit(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    for (ebpfMonPacketPut *p = c ? c->first : NULL; p; p = p->next) {
        notePassed(c, p, at);
        if (!p->closed)
            p->since = at;
        p->closed = 1;
    }
    if (c) { /* the next circuit from this port has other sequence numbers */
        c->outer.port = 0;
        c->passed = NULL;
        c->hasServed = c->hasForgotten = 0;
        if (!c->first && !c->publishedCount)
            ebpfMonJoinCircuitsForget(&join->circuits, c);
    }
    epicsMutexUnlock(join->lock);
}

void ebpfMonPutJoinNameChannel(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, uint32_t sid, const char *name)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    if (c)
        ebpfMonJoinCircuitNameChannel(c, sid, name);
    epicsMutexUnlock(join->lock);
}

ebpfMonPacketPut *ebpfMonPutJoinTakeUnmatched(ebpfMonPutJoin *join, uint64_t now)
{
    ebpfMonJoinLook look = { .targets = join->targets, .now = now };
    unsigned puts;
    ebpfMonPacketPut *list;
    int isNew;

    epicsMutexMustLock(join->lock);
    if (now != UINT64_MAX && now < join->lookAt) {
        epicsMutexUnlock(join->lock);
        return NULL;
    }
    puts = join->circuits.waiting + join->circuits.published;
    join->lookAt = puts > MANY ? now + puts * LOOK_NS : 0;
    look.eventsRead = join->eventsRead;
    look.packetsRead = join->packetsRead;
    list = takeUnmatched(&join->circuits, &look);
    join->due = look.due;
    isNew = look.events != UINT64_MAX && awaitRead(join->eventsRead, &join->eventsAwaited, look.events);
    epicsMutexUnlock(join->lock);
    wakeIf(isNew, join, join->wakes.events);
    return list;
}

static int isTaken(const ebpfMonPacketPut *p, const void *arg)
{
    const ebpfMonPacketPut *taken = arg;

    return p->isTaken && p->id == taken->id && p->circuit == taken->circuit && p->at == taken->at;
}

int ebpfMonPutJoinSettleTaken(ebpfMonPutJoin *join, const ebpfMonPacketPut *taken, int isReal)
{
    ebpfMonPacketPut *p;
    ebpfMonJoinCircuit *c;

    if (!taken->isTaken)
        return isReal;
    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, &taken->peer);
    p = c ? ebpfMonJoinCircuitsFindSeq(&join->circuits, c, taken->seq, isTaken, taken) : NULL;
    if (p && isReal) {
        p->isTaken = 0;
    } else if (p) {
        ebpfMonJoinCircuitsRemovePut(&join->circuits, p);
        free(p);
        p = NULL;
    }
    epicsMutexUnlock(join->lock);
    return p != NULL;
}

int ebpfMonPutJoinGetAsked(ebpfMonPutJoin *join, uint64_t now, struct ebpfMonPeer *peer, uint32_t *iocId)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = getAsked(&join->circuits, now);
    if (c) {
        *peer = c->peer;
        *iocId = c->askIoc;
        c->askedAt = now;
    }
    epicsMutexUnlock(join->lock);
    return c != NULL;
}

void ebpfMonPutJoinSetRead(ebpfMonPutJoin *join, const struct ebpfMonPeer *peer, int isRead, uint64_t at)
{
    ebpfMonJoinCircuit *c;

    epicsMutexMustLock(join->lock);
    c = ebpfMonJoinCircuitsFind(&join->circuits, peer);
    if (c && isRead) {
        c->readAt = at;
        c->askIoc = 0;
        join->lookAt = 0; /* its puts need not wait for the next look */
    }
    epicsMutexUnlock(join->lock);
}

uint64_t ebpfMonPutJoinGetDue(ebpfMonPutJoin *join)
{
    uint64_t due;

    epicsMutexMustLock(join->lock);
    due = join->due > join->lookAt ? join->due : join->lookAt;
    epicsMutexUnlock(join->lock);
    return due;
}

int ebpfMonPutJoinHasWaiting(ebpfMonPutJoin *join)
{
    int has;

    epicsMutexMustLock(join->lock);
    has = join->circuits.waiting > 0;
    epicsMutexUnlock(join->lock);
    return has;
}

uint64_t ebpfMonPutJoinCountDropped(ebpfMonPutJoin *join)
{
    uint64_t n;

    epicsMutexMustLock(join->lock);
    n = join->circuits.dropped;
    epicsMutexUnlock(join->lock);
    return n;
}
