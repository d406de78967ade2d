/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "trace/linkMessages.h"

#define WRITES     512
#define PACKETS    512          /* that wait for the event of their link write, which comes within some ms */
#define ON_ITS_WAY 1000000000ull /* ns from the link write to its packet at most */

/* A message whose packet came. */
typedef struct {
    uint32_t pid, seq;
    uint64_t at;
    struct ebpfMonPeer peer;
    char     channel[96];
} packetMessage;

struct ebpfMonLinkMessages {
    epicsMutexId lock; /* guards all that follows */
    ebpfMonLinkMessage write[WRITES];
    uint64_t begin[WRITES];    /* of their chains, close together: every chain is looked for, and few wrote to a link */
    unsigned nextWrite;        /* modulo WRITES the oldest one, which is overwritten next */
    uint64_t forgotten;        /* when the last one that was overwritten had been made; monotonic ns */
    packetMessage packet[PACKETS];
    unsigned firstPacket, endOfPackets; /* those from first to end wait; modulo PACKETS */
};

ebpfMonLinkMessages *ebpfMonLinkMessagesNew(void)
{
    ebpfMonLinkMessages *m = calloc(1, sizeof(*m));

    if (m)
        m->lock = epicsMutexMustCreate();
    return m;
}

void ebpfMonLinkMessagesFree(ebpfMonLinkMessages *m)
{
    if (!m)
        return;
    epicsMutexDestroy(m->lock);
    free(m);
}

void ebpfMonLinkMessagesAdd(ebpfMonLinkMessages *m, const ebpfMonLinkWrite *link)
{
    ebpfMonLinkMessage *w;

    if (!link->chain.iocId)
        return;
    epicsMutexMustLock(m->lock);
    m->begin[m->nextWrite % WRITES] = link->chain.begin;
    w = &m->write[m->nextWrite++ % WRITES];
    if (w->at > m->forgotten)
        m->forgotten = w->at;
    memset(w, 0, sizeof(*w));
    w->chain = link->chain;
    w->step = link->step;
    w->pid = link->pid;
    w->at = link->at;
    memcpy(w->channel, link->channel, sizeof(w->channel));
    memcpy(w->link, link->link, sizeof(w->link));
    epicsMutexUnlock(m->lock);
}

void ebpfMonLinkMessagesNoteChain(ebpfMonLinkMessages *m, const ebpfMonChainId *chain)
{
    epicsMutexMustLock(m->lock);
    for (unsigned i = 0; i < WRITES; i++)
        if (ebpfMonChainIdIsSame(&m->write[i].step, chain)) {
            m->write[i].isStepKnown = 1;
            m->begin[i] = chain->begin;
        }
    epicsMutexUnlock(m->lock);
}

static const ebpfMonChainId *getChain(const ebpfMonLinkMessage *w)
{
    return w->isStepKnown ? &w->step : &w->chain;
}

static void setMessage(ebpfMonLinkMessage *w, const struct ebpfMonPeer *peer, uint32_t seq)
{
    w->isMessage = 1;
    w->peer = *peer;
    w->seq = seq;
}

/* Base sends only the last value of a link: the values before it will not be sent any more. */
static void skipEarlierWrites(ebpfMonLinkMessages *m, const ebpfMonLinkMessage *sent, uint64_t at)
{
    for (unsigned i = 0; i < WRITES; i++) {
        ebpfMonLinkMessage *w = &m->write[i];

        if (w->pid != sent->pid || w->seen || w->at >= sent->at || strcmp(w->link, sent->link) != 0)
            continue;
        w->seen = w->isSkipped = 1;
        w->seenAt = at;
    }
}

void ebpfMonLinkMessagesNoteArrival(ebpfMonLinkMessages *m, const ebpfMonChainId *chain, const char *link,
                                    const ebpfMonMessageKey *key)
{
    epicsMutexMustLock(m->lock);
    for (unsigned i = 0; i < WRITES; i++) {
        ebpfMonLinkMessage *w = &m->write[i];

        if (!ebpfMonChainIdIsSame(&w->chain, chain) || (w->seen && !w->isSkipped) || strcmp(w->link, link) != 0)
            continue;
        w->seen = w->inside = 1;
        w->isSkipped = 0;
        w->seenAt = key->at;
        if (key->seqKind == EBPFMON_SEQ_MESSAGE)
            setMessage(w, &key->peer, key->seq);
        else
            w->isHidden = key->peer.addr != 0;
        skipEarlierWrites(m, w, key->at);
        break;
    }
    epicsMutexUnlock(m->lock);
}

/* Nonzero: the packet may carry this write. One that is later than the packet cannot be in it. */
static int mayCarry(const packetMessage *p, const ebpfMonLinkMessage *w)
{
    return w->chain.iocId && w->pid == p->pid && !w->seen && w->at <= p->at && p->at - w->at <= ON_ITS_WAY &&
           (!p->channel[0] || strcmp(w->channel, p->channel) == 0);
}

/* Several links may write to one channel before the first packet leaves. Base serves them in the order in which they
 * began to wait, and sends the last value of each (dbCa.c). */
static ebpfMonLinkMessage *findWriteOf(ebpfMonLinkMessages *m, const packetMessage *p)
{
    const ebpfMonLinkMessage *first = NULL;
    ebpfMonLinkMessage *last = NULL;
    unsigned others = 0;

    for (unsigned i = 0; i < WRITES; i++) {
        const ebpfMonLinkMessage *w = &m->write[i];

        if (mayCarry(p, w) && (!first || w->at < first->at))
            first = w;
    }
    for (unsigned i = 0; first && i < WRITES; i++) {
        ebpfMonLinkMessage *w = &m->write[i];

        if (!mayCarry(p, w))
            continue;
        if (strcmp(w->link, first->link) != 0)
            others++;
        else if (!last || w->at > last->at)
            last = w;
    }
    return others && !p->channel[0] ? NULL : last;
}

void ebpfMonLinkMessagesNotePacket(ebpfMonLinkMessages *m, uint32_t pid, const char *channel,
                                   const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at)
{
    packetMessage *p;

    epicsMutexMustLock(m->lock);
    if (m->endOfPackets - m->firstPacket == PACKETS)
        m->firstPacket++;
    p = &m->packet[m->endOfPackets++ % PACKETS];
    p->pid = pid;
    p->seq = seq;
    p->at = at;
    p->peer = *peer;
    snprintf(p->channel, sizeof(p->channel), "%s", channel);
    epicsMutexUnlock(m->lock);
}

void ebpfMonLinkMessagesMatch(ebpfMonLinkMessages *m, uint64_t upTo)
{
    epicsMutexMustLock(m->lock);
    for (; m->firstPacket != m->endOfPackets && m->packet[m->firstPacket % PACKETS].at < upTo; m->firstPacket++) {
        const packetMessage *p = &m->packet[m->firstPacket % PACKETS];
        ebpfMonLinkMessage *w = findWriteOf(m, p);

        if (!w)
            continue;
        w->seen = 1;
        w->seenAt = p->at;
        setMessage(w, &p->peer, p->seq);
        skipEarlierWrites(m, w, p->at);
    }
    epicsMutexUnlock(m->lock);
}

unsigned ebpfMonLinkMessagesFind(ebpfMonLinkMessages *m, const ebpfMonChainId *chain, ebpfMonLinkMessage *list,
                                 unsigned max)
{
    unsigned n = 0;

    epicsMutexMustLock(m->lock);
    for (unsigned i = 0; i < WRITES && n < max; i++) {
        unsigned at = (m->nextWrite + i) % WRITES;

        if (m->begin[at] == chain->begin && ebpfMonChainIdIsSame(getChain(&m->write[at]), chain))
            list[n++] = m->write[at];
    }
    epicsMutexUnlock(m->lock);
    return n;
}

int ebpfMonLinkMessagesHaveForgotten(ebpfMonLinkMessages *m, uint64_t since)
{
    uint64_t forgotten;

    epicsMutexMustLock(m->lock);
    forgotten = m->forgotten;
    epicsMutexUnlock(m->lock);
    return forgotten >= since;
}
