/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include <epicsMutex.h>
#include <epicsThread.h>

#include "put/linkWrites.h"

#define SETS  512 /* of channels; by hash */
#define WAYS  4   /* links that write to the channels of a set */
#define LIFE  60000000000ull /* ns: a CA link that is not connected sends when it is */
#define CLOSE 1000000000ull

static epicsMutexId lock; /* of the table */
static ebpfMonLinkWrite table[SETS][WAYS];

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

static ebpfMonLinkWrite *setOf(uint32_t pid, const char *channel)
{
    uint32_t h = pid * 2654435761u;

    for (; *channel; channel++)
        h = (h ^ (unsigned char)*channel) * 16777619u;
    return table[(h ^ h >> 16) % SETS];
}

void ebpfMonLinkWritesAdd(const ebpfMonLinkWrite *link)
{
    ebpfMonLinkWrite *set = setOf(link->pid, link->channel), *to = &set[0];

    take();
    for (int i = 0; i < WAYS; i++) {
        if (set[i].pid == link->pid && strcmp(set[i].link, link->link) == 0 &&
            strcmp(set[i].channel, link->channel) == 0) {
            to = &set[i];
            break;
        }
        if (set[i].at < to->at)
            to = &set[i];
    }
    *to = *link;
    epicsMutexUnlock(lock);
}

int ebpfMonLinkWritesFind(uint32_t pid, const char *channel, uint64_t now, ebpfMonLinkWrite *link, unsigned *others)
{
    const ebpfMonLinkWrite *set = setOf(pid, channel), *newest = NULL;

    *others = 0;
    take();
    for (int i = 0; i < WAYS; i++) {
        const ebpfMonLinkWrite *l = &set[i];

        /* one that is sent while the put is being told of may be the later one by its time */
        if (l->pid != pid || (l->at < now && now - l->at > LIFE) || strcmp(l->channel, channel) != 0)
            continue;
        if (!newest || l->at > newest->at)
            newest = l;
    }
    for (int i = 0; newest && i < WAYS; i++)
        *others += &set[i] != newest && set[i].pid == pid && newest->at - set[i].at < CLOSE &&
                   strcmp(set[i].channel, channel) == 0;
    if (newest)
        *link = *newest;
    epicsMutexUnlock(lock);
    return newest != NULL;
}

int ebpfMonLinkWritesSetWriter(uint32_t pid, const char *channel, uint64_t now, ebpfMonPut *put)
{
    unsigned others;
    ebpfMonLinkWrite l;

    if (!ebpfMonLinkWritesFind(pid, channel, now, &l, &others))
        return 0;
    put->through = ebpfMonByCaLink;
    put->linkChain = l.chain;
    snprintf(put->link, sizeof(put->link), "%s", l.link);
    snprintf(put->linkIoc, sizeof(put->linkIoc), "%s", l.ioc);
    snprintf(put->root, sizeof(put->root), "%s", l.root);
    if (others)
        snprintf(put->cause, sizeof(put->cause), "%.60s; or one of %u other links", l.cause, others);
    else
        snprintf(put->cause, sizeof(put->cause), "%s", l.cause);
    return 1;
}
