/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "put/joinUnmatched.h"

/* How long a put that was seen in packets waits at most. */
#define SENT_NS   50000000ull    /* for the error reply to a plain CA write: it comes by then, or not at all */
#define REPLY_NS  10000000000ull /* for a reply that was asked for */
/* Time limits for the same put in an IOC in which each put is seen. They count from the last thing that the IOC did
 * about it, in events that were read. */
#define REFUSED_NS (2 * SENT_NS) /* once the IOC has refused it: some refusals are seen in the IOC, too */
#define MADE_NS   2500000000ull  /* … has replied, or has served later messages: the put may wait there 2 s for its
                                    result (pendingPuts.c) */
#define CLOSED_NS 10000000000ull /* … once the circuit is closed: a slow IOC still reads what came before */
#define STUCK_NS  3600000000000ull /* … if it does none of that: it hangs, is stopped by a debugger, or the put is a
                                    write-notify, which waits for its record: a motor moves for minutes (dbNotify.c) */

#define KEPT_NS   10000000000ull /* a put is kept for so long after it was published: a slow IOC may make it only
                                     * then, when its probes are attached; STUCK_NS if they were: the IOC may be
                                     * stopped by a debugger */
#define PUBLISHED_MAX  4096
#define AGAIN_NS  1000000ull /* to the next look, when not all packets were read */
#define ASK_NS    250000000ull /* between two questions whether the server has read what came */

void ebpfMonJoinUnmatchedJudge(ebpfMonTargets *targets, ebpfMonPacketPut *p)
{
    uint64_t since;

    if (p->isCall)
        return;
    if (!targets)
        p->inside = p->iocId != 0;
    else if ((p->iocId || p->pid) && !ebpfMonTargetsGetPutsSince(targets, &p->iocId, p->pid, &since))
        p->inside = p->at >= since; /* of an IOC that is forgotten: as it was */
}

void ebpfMonJoinUnmatchedNotePassed(const ebpfMonJoinCircuit *c, ebpfMonPacketPut *p, uint64_t now)
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

    ebpfMonJoinUnmatchedNotePassed(c, p, look->now);
    ebpfMonJoinUnmatchedJudge(look->targets, p);
    end = findEnd(c, p, &byEvents);
    /* a put to nobody of this host may be seen again, in another namespace (translated.h) */
    if (!byEvents && !p->pid && look->now != UINT64_MAX && look->packetsRead < p->since) {
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

/* Bytes behind a gap may look like a message. A put seen in the IOC shows whether it is one. */
static int isCertain(const ebpfMonJoinCircuit *c, const ebpfMonPacketPut *p)
{
    return !p->inside || !p->stretch || p->replied ||
           (c->confirmedCircuit == p->circuit && c->confirmedStretch == p->stretch &&
            !ebpfMonJoinIsBefore(p->seq, c->confirmedFrom));
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

    if (p->iocId && !p->made && circuits->published < PUBLISHED_MAX && look->now != UINT64_MAX)
        copy = malloc(sizeof(*copy) + p->have);
    if (!copy) {
        ebpfMonJoinCircuitsRemovePut(circuits, p);
        return p;
    }
    memcpy(copy, p, sizeof(*copy) + p->have);
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
        p = takeOut(circuits, p, look);
        p->next = NULL;
        if ((p->made && (!p->replied || p->ok || p->told)) || !isCertain(c, p)) {
            free(p);
            continue;
        }
        *end = p;
        end = &p->next;
    }
    return end;
}

ebpfMonJoinCircuit *ebpfMonJoinUnmatchedGetAsked(const ebpfMonJoinCircuits *circuits, uint64_t now)
{
    ebpfMonJoinCircuit *found = NULL;

    for (ebpfMonJoinCircuit *c = circuits->newest; c; c = c->older)
        if (c->askIoc && now >= c->askedAt + ASK_NS && (!found || c->askedAt < found->askedAt))
            found = c;
    return found;
}

ebpfMonPacketPut *ebpfMonJoinUnmatchedTake(ebpfMonJoinCircuits *circuits, ebpfMonJoinLook *look)
{
    ebpfMonPacketPut *list = NULL, **end = &list;

    look->due = look->events = UINT64_MAX;
    for (ebpfMonJoinCircuit *c = circuits->waiting + circuits->published ? circuits->newest : NULL; c; c = c->older)
        end = takeOfCircuit(circuits, c, look, end);
    return list;
}
