/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "put/iocPuts.h"
#include "put/pendingPuts.h"
#include "put/putAuthors.h"
#include "put/putDecode.h"
#include "put/putNumbers.h"
#include "put/putWriter.h"
#include "put/writerText.h"

#define CAUSES 64

struct ebpfMonIocPuts {
    ebpfMonTargets     *targets;    /* these five are the caller's */
    ebpfMonLinkWrites  *linkWrites;
    ebpfMonThreadPuts  *threadPuts;
    ebpfMonLosses      *losses;
    ebpfMonAudits      *audits;
    ebpfMonIocPutSinks  sinks;
    ebpfMonPutWriters  *writers;
    ebpfMonPendingPuts *pending;
    ebpfMonPutNumbers  *numbers;
    struct ebpfMonCauseEvent cause[CAUSES]; /* by thread: the cause of the put that it makes next */
};

ebpfMonIocPuts *ebpfMonIocPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, ebpfMonPutJoin *join,
                                  ebpfMonLinkWrites *linkWrites, ebpfMonThreadPuts *threadPuts, ebpfMonLosses *losses,
                                  ebpfMonAudits *audits, const ebpfMonIocPutSinks *sinks)
{
    ebpfMonIocPuts *puts = calloc(1, sizeof(*puts));

    if (!puts)
        return NULL;
    puts->targets = targets;
    puts->linkWrites = linkWrites;
    puts->threadPuts = threadPuts;
    puts->losses = losses;
    puts->audits = audits;
    puts->sinks = *sinks;
    puts->writers = ebpfMonPutWritersNew(clients, linkWrites, threadPuts);
    puts->pending = ebpfMonPendingPutsNew(targets, join, clients, linkWrites, sinks->missedReceive, sinks->finished,
                                          sinks->arg);
    puts->numbers = ebpfMonPutNumbersNew(sinks->countLost, sinks->arg);
    if (!puts->writers || !puts->pending || !puts->numbers) {
        ebpfMonIocPutsFree(puts);
        return NULL;
    }
    return puts;
}

void ebpfMonIocPutsFree(ebpfMonIocPuts *puts)
{
    if (!puts)
        return;
    ebpfMonPutWritersFree(puts->writers);
    ebpfMonPendingPutsFree(puts->pending);
    ebpfMonPutNumbersFree(puts->numbers);
    free(puts);
}

void ebpfMonIocPutsAddCause(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size)
{
    if (size >= sizeof(*ev))
        puts->cause[ev->head.tid % CAUSES] = *ev;
}

/* The cause that the kernel part sent ahead of this put. NULL: none. */
static struct ebpfMonCauseEvent *findCause(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev)
{
    struct ebpfMonCauseEvent *cause = &puts->cause[ev->head.tid % CAUSES];

    return cause->head.tid == ev->head.tid && cause->head.iocId == ev->head.iocId && cause->put == (uint32_t)ev->id ?
           cause : NULL;
}

void ebpfMonIocPutsAddLinkWrite(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    ebpfMonPutEventClients clients;
    ebpfMonLinkWrite write;
    ebpfMonTarget *t;
    int isKnown;

    if (size < sizeof(*ev))
        return;
    ebpfMonPutWritersLookUp(puts->writers, &ev->head, &ev->who, NULL, &clients);
    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(puts->targets);
        t = ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
        isKnown = t && ebpfMonPutWritersFindLinkWrite(puts->writers, t, ev, &clients, &write);
        ebpfMonTargetsUnlock(puts->targets);
    } while (ebpfMonLateReadsMake(reads));
    if (!isKnown)
        return;
    ebpfMonLinkWritesAdd(puts->linkWrites, &write);
    puts->sinks.linkWritten(puts->sinks.arg, &write);
}

/* What is kept with a put until it is finished. */
static void fillPending(ebpfMonPendingPut *p, const struct ebpfMonPutEvent *ev, int isLate, uint64_t author)
{
    int isOwn = !ev->root || ev->root == ev->precord; /* else another record's chain made it, and no message */

    p->tid = ev->head.tid;
    p->id = ev->id;
    p->since = ev->head.ktime;
    p->stillAt = 0;
    p->iocId = ev->head.iocId;
    p->lateAddr = isLate ? ev->addr : 0;
    p->linkAt = ev->site == EBPFMON_SITE_LINK ? ev->pfield : 0;
    p->at = (ebpfMonPutPlace){
        .pfldDes = ev->pfldDes, .precord = ev->precord, .fieldType = ev->fieldType, .fieldSize = ev->fieldSize,
        .isAcknowledge = ebpfMonPutDecodeIsAcknowledge(ev),
    };
    memset(&p->key, 0, sizeof(p->key));
    if (isOwn)
        p->key.peer = ev->who.peer;
    p->isAuthor = isOwn && ev->who.isShared;
    p->author = p->put.isUnsure && !p->isAuthor ? author : 0;
    p->key.at = ev->head.ktime;
    p->key.seq = ev->seq;
    p->key.seqFrom = ev->seqFrom;
    p->key.seqKind = ev->seqKind;
}

/* The writer, as the cause of the chain that the put starts. A put by a link is made within a chain and starts none. */
static void addToThread(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, const ebpfMonPut *put)
{
    char who[80] = "";

    if (put->through == ebpfMonByLink)
        return;
    if (put->peer[0])
        ebpfMonWriterTextFormatCause(put->user, put->host, put->isUnsure, who, sizeof(who));
    ebpfMonThreadPutsAdd(puts->threadPuts, ev, who);
}

/* Other links, such as those of JSON, do not have the text that was put. */
static int hasLinkText(const struct ebpfMonPutEvent *ev)
{
    return ev->linkType == EBPFMON_LINK_CONSTANT || ev->linkType == EBPFMON_LINK_PV ||
           ev->linkType == EBPFMON_LINK_DB || ev->linkType == EBPFMON_LINK_CA;
}

/* What is known of a put when its event was decoded. */
typedef struct {
    int isGood;           /* the event makes sense */
    int hasResult;        /* its result will come, or can be read */
    int isLate;           /* its link is perhaps known later */
    ebpfMonLinkPut change;
} decodedPut;

/* Decodes the event and finds the writer. It may be called again for the same event (host/lateReads.h). */
static void decodePut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size,
                      const struct ebpfMonCauseEvent *cause, const ebpfMonPutEventClients *clients, ebpfMonPut *put,
                      decodedPut *decoded)
{
    ebpfMonTarget *t;

    memset(decoded, 0, sizeof(*decoded));
    ebpfMonTargetsLock(puts->targets);
    t = ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
    if (t && (decoded->isGood = ebpfMonPutDecodeEvent(t, ev, size, put, &decoded->change))) {
        ebpfMonPutWritersFind(puts->writers, t, ev, cause, clients, put);
        decoded->hasResult = (ev->site == EBPFMON_SITE_PUT && ebpfMonTargetSendsResult(t, ev->head.ktime)) ||
                             ev->site == EBPFMON_SITE_LINK;
        if (!ebpfMonLateReadsAreWanted(t->eventThread.reads))
            ebpfMonPutWritersAddLink(puts->writers, t, &decoded->change, ev->head.ktime);
        decoded->isLate = !t->indexed && (put->through == ebpfMonByInit || put->through == ebpfMonByThread);
    }
    ebpfMonTargetsUnlock(puts->targets);
}

void ebpfMonIocPutsAddPut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    struct ebpfMonCauseEvent *cause;
    ebpfMonPutEventClients clients;
    ebpfMonPendingPut *p;
    decodedPut decoded;
    uint64_t missing;

    if (size < sizeof(*ev))
        return;
    missing = ebpfMonPutNumbersAdd(puts->numbers, ev->head.iocId, ev->head.tid, ev->id, ev->head.ktime);
    cause = findCause(puts, ev);
    p = ebpfMonPendingPutsReserve(puts->pending);
    ebpfMonPutWritersLookUp(puts->writers, &ev->head, &ev->who, cause, &clients);
    ebpfMonLateReadsBegin(reads);
    do
        decodePut(puts, ev, size, cause, &clients, &p->put, &decoded);
    while (ebpfMonLateReadsMake(reads));
    if (cause)
        cause->head.tid = 0; /* it is used */
    if (!decoded.isGood) {
        ebpfMonLossesAdd(puts->losses, ebpfMonLossGone);
        ebpfMonPendingPutsDiscard(puts->pending, p);
        return;
    }
    if (missing)
        ebpfMonAuditsAdd(puts->audits, ebpfMonAuditPutNumber, missing, p->put.ioc);
    if (decoded.change.precord)
        puts->sinks.linkChanged(puts->sinks.arg, ev->head.iocId, decoded.change.precord);
    addToThread(puts, ev, &p->put);
    if (ev->site == EBPFMON_SITE_LINK)
        ebpfMonPendingPutsNoteLink(puts->pending, ev, hasLinkText(ev) ? p->put.old : NULL);
    fillPending(p, ev, decoded.isLate,
                cause ? cause->putNumber : ebpfMonThreadPutsGetNumber(puts->threadPuts, ev->head.iocId, ev->head.tid));
    if (decoded.hasResult)
        ebpfMonPendingPutsAwaitResult(puts->pending, p);
    else
        ebpfMonPendingPutsComplete(puts->pending, p);
}

void ebpfMonIocPutsAddResult(ebpfMonIocPuts *puts, const struct ebpfMonResultEvent *ev, size_t size)
{
    ebpfMonLateReads *reads = ebpfMonTargetsGetReads(puts->targets);
    ebpfMonPendingPut *p;
    ebpfMonTarget *t;

    if (size < sizeof(*ev) || !(p = ebpfMonPendingPutsTake(puts->pending, ev->head.tid, ev->id)))
        return;
    p->put.result = ev->status ? ebpfMonPutFailed : ebpfMonPutOk;
    p->put.status = (long)ev->status;
    ebpfMonLateReadsBegin(reads);
    do {
        ebpfMonTargetsLock(puts->targets);
        t = ev->status ? NULL : ebpfMonTargetsFindById(puts->targets, ev->head.iocId);
        if (t)
            ebpfMonPutDecodeResult(t, &p->at, ev, &p->put);
        ebpfMonTargetsUnlock(puts->targets);
    } while (ebpfMonLateReadsMake(reads));
    ebpfMonPendingPutsComplete(puts->pending, p);
}

void ebpfMonIocPutsTick(ebpfMonIocPuts *puts, uint64_t now, int all)
{
    ebpfMonPendingPutsTick(puts->pending, now, all);
}

uint64_t ebpfMonIocPutsGetDue(const ebpfMonIocPuts *puts, uint64_t now)
{
    return ebpfMonPendingPutsGetDue(puts->pending, now);
}

uint64_t ebpfMonIocPutsGetOldest(const ebpfMonIocPuts *puts)
{
    return ebpfMonPendingPutsGetOldest(puts->pending);
}

int ebpfMonIocPutsAddEvent(ebpfMonIocPuts *puts, const struct ebpfMonHead *head, size_t size)
{
    switch (head->kind) {
    case EBPFMON_EV_PUT:
        ebpfMonIocPutsAddPut(puts, (const struct ebpfMonPutEvent *)head, size);
        return 1;
    case EBPFMON_EV_RESULT:
        ebpfMonIocPutsAddResult(puts, (const struct ebpfMonResultEvent *)head, size);
        return 1;
    case EBPFMON_EV_CAUSE:
        ebpfMonIocPutsAddCause(puts, (const struct ebpfMonCauseEvent *)head, size);
        return 1;
    case EBPFMON_EV_CALINK:
        ebpfMonIocPutsAddLinkWrite(puts, (const struct ebpfMonCauseEvent *)head, size);
        return 1;
    default:
        return 0;
    }
}
