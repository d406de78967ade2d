/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epicsMutex.h>

#include "common/clock.h"
#include "common/hash.h"
#include "put/linkWrites.h"

#define SETS  512 /* of channels, by hash */
#define WAYS  4   /* links that write to the channels of one set */
#define LIFE_NS  (60 * EBPFMON_SECOND_NS) /* a CA link that is not connected sends once it is */
#define CLOSE_NS EBPFMON_SECOND_NS        /* two writes this close may be mistaken for each other */

struct ebpfMonLinkWrites {
    epicsMutexId lock; /* guards the table */
    ebpfMonLinkWrite table[SETS][WAYS];
};

ebpfMonLinkWrites *ebpfMonLinkWritesNew(void)
{
    ebpfMonLinkWrites *writes = calloc(1, sizeof(*writes));

    if (writes)
        writes->lock = epicsMutexMustCreate();
    return writes;
}

void ebpfMonLinkWritesFree(ebpfMonLinkWrites *writes)
{
    if (!writes)
        return;
    epicsMutexDestroy(writes->lock);
    free(writes);
}

static ebpfMonLinkWrite *findSet(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel)
{
    uint32_t h = ebpfMonHashFnv32(pid * 2654435761u, channel, strlen(channel));

    return writes->table[(h ^ h >> 16) % SETS];
}

void ebpfMonLinkWritesAdd(ebpfMonLinkWrites *writes, const ebpfMonLinkWrite *write)
{
    ebpfMonLinkWrite *set = findSet(writes, write->pid, write->channel), *to = &set[0];

    epicsMutexMustLock(writes->lock);
    for (int i = 0; i < WAYS; i++) {
        if (set[i].pid == write->pid && strcmp(set[i].link, write->link) == 0 &&
            strcmp(set[i].channel, write->channel) == 0) {
            to = &set[i];
            break;
        }
        if (set[i].at < to->at)
            to = &set[i];
    }
    *to = *write;
    epicsMutexUnlock(writes->lock);
}

/* The newest write of the process to "channel". *others: how many other links of the process wrote to this channel
 * at nearly the same time. Nonzero: there is a write. */
static int findNewest(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t now,
                      ebpfMonLinkWrite *write, unsigned *others)
{
    const ebpfMonLinkWrite *set = findSet(writes, pid, channel), *newest = NULL;

    *others = 0;
    epicsMutexMustLock(writes->lock);
    for (int i = 0; i < WAYS; i++) {
        const ebpfMonLinkWrite *w = &set[i];

        /* A write may be later than "now": the link wrote again while the event of the put was on its way. */
        if (w->pid != pid || (w->at < now && now - w->at > LIFE_NS) || strcmp(w->channel, channel) != 0)
            continue;
        if (!newest || w->at > newest->at)
            newest = w;
    }
    for (int i = 0; newest && i < WAYS; i++)
        *others += &set[i] != newest && set[i].pid == pid && newest->at - set[i].at < CLOSE_NS &&
                   strcmp(set[i].channel, channel) == 0;
    if (newest)
        *write = *newest;
    epicsMutexUnlock(writes->lock);
    return newest != NULL;
}

int ebpfMonLinkWritesSetWriter(ebpfMonLinkWrites *writes, uint32_t pid, const char *channel, uint64_t now,
                               ebpfMonPut *put)
{
    unsigned others;
    ebpfMonLinkWrite w;

    if (!findNewest(writes, pid, channel, now, &w, &others))
        return 0;
    put->through = ebpfMonByCaLink;
    put->linkChain = w.chain;
    snprintf(put->link, sizeof(put->link), "%s", w.link);
    snprintf(put->linkIoc, sizeof(put->linkIoc), "%s", w.ioc);
    snprintf(put->root, sizeof(put->root), "%s", w.root);
    if (others)
        snprintf(put->cause, sizeof(put->cause), "%.60s; or one of %u other links", w.cause, others);
    else
        snprintf(put->cause, sizeof(put->cause), "%s", w.cause);
    return 1;
}
