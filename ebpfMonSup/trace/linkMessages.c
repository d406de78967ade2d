/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "trace/linkMessages.h"

#define SENDS      512
#define OUT        512        /* messages that wait for the inside; it looks every few ms */
#define ON_ITS_WAY 1000000000ull /* ns */

/* A message whose packet came. */
typedef struct {
    uint32_t pid, seq;
    uint64_t at;
    struct ebpfMonPeer peer;
    char     channel[96];
} message;

static epicsMutexId lock; /* of the rings */
static ebpfMonLinkMessage ring[SENDS];
static uint64_t begins[SENDS]; /* of their chains: every chain is looked for, and hardly one is here */
static unsigned head;     /* the oldest one, and the next to be overwritten */
static message out[OUT];
static unsigned firstOut, nextOut; /* [firstOut, nextOut) modulo OUT wait */

static void init(void *unused)
{
    (void)unused;
    lock = epicsMutexMustCreate();
}

static void take(void)
{
    static epicsThreadOnceId once = EPICS_THREAD_ONCE_INIT;

    epicsThreadOnce(&once, init, NULL);
    epicsMutexMustLock(lock);
}

static int isOf(const ebpfMonLinkMessage *s, const ebpfMonChainId *chain)
{
    return s->chain.iocId == chain->iocId && s->chain.tid == chain->tid && s->chain.begin == chain->begin;
}

void ebpfMonLinkMessagesAdd(const ebpfMonLinkWrite *link)
{
    ebpfMonLinkMessage *s;

    if (!link->chain.iocId)
        return;
    take();
    begins[head % SENDS] = link->chain.begin;
    s = &ring[head++ % SENDS];
    memset(s, 0, sizeof(*s));
    s->chain = link->chain;
    s->pid = link->pid;
    s->at = link->at;
    memcpy(s->channel, link->channel, sizeof(s->channel));
    memcpy(s->link, link->link, sizeof(s->link));
    epicsMutexUnlock(lock);
}

static void seen(ebpfMonLinkMessage *s, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at, int inside)
{
    s->seen = 1;
    s->inside = inside;
    s->seenAt = at;
    s->isMessage = peer != NULL;
    if (peer) {
        s->peer = *peer;
        s->seq = seq;
    }
}

void ebpfMonLinkMessagesNoteArrival(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer, uint32_t seq,
                         uint64_t at, int inside)
{
    take();
    for (unsigned i = 0; i < SENDS; i++) {
        ebpfMonLinkMessage *s = &ring[i];

        if (!isOf(s, chain) || s->seen || strcmp(s->link, link) != 0)
            continue;
        seen(s, peer, seq, at, inside);
        break;
    }
    epicsMutexUnlock(lock);
}

/* The chain that wrote last before that: a later one may have written meanwhile. */
static ebpfMonLinkMessage *sentAt(uint32_t pid, const char *channel, uint64_t at)
{
    ebpfMonLinkMessage *found = NULL;
    unsigned links = 0;

    for (unsigned i = 0; i < SENDS; i++) {
        ebpfMonLinkMessage *s = &ring[(head + i) % SENDS];

        if (!s->chain.iocId || s->pid != pid || s->seen || s->at > at || at - s->at > ON_ITS_WAY ||
            (channel[0] && strcmp(s->channel, channel) != 0))
            continue;
        links += !found || strcmp(found->link, s->link) != 0;
        found = s; /* of several values of one link the last one is sent (dbCa.c) */
    }
    return links > 1 && !channel[0] ? NULL : found;
}

void ebpfMonLinkMessagesNotePacket(uint32_t pid, const char *channel, const struct ebpfMonPeer *peer, uint32_t seq, uint64_t at)
{
    message *m;

    take();
    if (nextOut - firstOut == OUT)
        firstOut++;
    m = &out[nextOut++ % OUT];
    m->pid = pid;
    m->seq = seq;
    m->at = at;
    m->peer = *peer;
    snprintf(m->channel, sizeof(m->channel), "%s", channel);
    epicsMutexUnlock(lock);
}

void ebpfMonLinkMessagesMatch(uint64_t upTo)
{
    take();
    for (; firstOut != nextOut && out[firstOut % OUT].at < upTo; firstOut++) {
        const message *m = &out[firstOut % OUT];
        ebpfMonLinkMessage *s = sentAt(m->pid, m->channel, m->at);

        if (!s)
            continue;
        seen(s, &m->peer, m->seq, m->at, 0);
        for (unsigned i = 0; i < SENDS; i++) /* what the same link wrote before will not go out any more */
            if (ring[i].pid == s->pid && !ring[i].seen && ring[i].at < s->at && strcmp(ring[i].link, s->link) == 0)
                seen(&ring[i], NULL, 0, m->at, 0);
    }
    epicsMutexUnlock(lock);
}

unsigned ebpfMonLinkMessagesFind(const ebpfMonChainId *chain, ebpfMonLinkMessage *list, unsigned max)
{
    unsigned n = 0;

    take();
    for (unsigned i = 0; i < SENDS && n < max; i++) {
        unsigned at = (head + i) % SENDS;

        if (begins[at] == chain->begin && isOf(&ring[at], chain))
            list[n++] = ring[at];
    }
    epicsMutexUnlock(lock);
    return n;
}
