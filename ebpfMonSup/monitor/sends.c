/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "monitor/sends.h"

#define SENDS      512
#define ON_ITS_WAY 1000000000ull /* ns */

static epicsMutexId lock; /* of the ring */
static ebpfMonSend ring[SENDS];
static uint64_t begins[SENDS]; /* of their chains: every chain is looked for, and hardly one is here */
static unsigned head;     /* the oldest one, and the next to be overwritten */

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

static int isOf(const ebpfMonSend *s, const ebpfMonChainId *chain)
{
    return s->chain.iocId == chain->iocId && s->chain.tid == chain->tid && s->chain.begin == chain->begin;
}

void ebpfMonSendsAdd(const ebpfMonCaLink *link)
{
    ebpfMonSend *s;

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

void ebpfMonSendsMessage(const ebpfMonChainId *chain, const char *link, const struct ebpfMonPeer *peer, uint32_t seq,
                         uint64_t at, int inside)
{
    take();
    for (unsigned i = 0; i < SENDS; i++) {
        ebpfMonSend *s = &ring[i];

        if (!isOf(s, chain) || s->seen || strcmp(s->link, link) != 0)
            continue;
        s->seen = 1;
        s->inside = inside;
        s->seenAt = at;
        s->isMessage = peer != NULL;
        if (peer) {
            s->peer = *peer;
            s->seq = seq;
        }
        break;
    }
    epicsMutexUnlock(lock);
}

int ebpfMonSendsAt(uint32_t pid, const char *channel, uint64_t at, ebpfMonSend *send)
{
    const ebpfMonSend *found = NULL;
    unsigned links = 0;

    take();
    for (unsigned i = 0; i < SENDS; i++) {
        const ebpfMonSend *s = &ring[(head + i) % SENDS];

        if (!s->chain.iocId || s->pid != pid || s->seen || s->at > at || at - s->at > ON_ITS_WAY ||
            (channel[0] && strcmp(s->channel, channel) != 0))
            continue;
        links += !found || strcmp(found->link, s->link) != 0;
        found = s; /* of several values of one link the last one is sent (dbCa.c) */
    }
    if (links > 1 && !channel[0])
        found = NULL;
    if (found)
        *send = *found;
    epicsMutexUnlock(lock);
    return found != NULL;
}

unsigned ebpfMonSendsOf(const ebpfMonChainId *chain, ebpfMonSend *list, unsigned max)
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
