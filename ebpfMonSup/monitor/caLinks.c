/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "monitor/caLinks.h"

#define SETS  512 /* of channels; by hash */
#define WAYS  4   /* links that write to the channels of a set */
#define LIFE  60000000000ull /* ns: a CA link that is not connected sends when it is */
#define CLOSE 1000000000ull

static ebpfMonCaLink table[SETS][WAYS];

static ebpfMonCaLink *setOf(uint32_t pid, const char *channel)
{
    uint32_t h = pid * 2654435761u;

    for (; *channel; channel++)
        h = (h ^ (unsigned char)*channel) * 16777619u;
    return table[(h ^ h >> 16) % SETS];
}

void ebpfMonCaLinkSent(const ebpfMonCaLink *link)
{
    ebpfMonCaLink *set = setOf(link->pid, link->channel), *oldest = &set[0];

    for (int i = 0; i < WAYS; i++) {
        if (set[i].pid == link->pid && strcmp(set[i].link, link->link) == 0 &&
            strcmp(set[i].channel, link->channel) == 0) {
            set[i] = *link;
            return;
        }
        if (set[i].at < oldest->at)
            oldest = &set[i];
    }
    *oldest = *link;
}

const ebpfMonCaLink *ebpfMonCaLinkFind(uint32_t pid, const char *channel, uint64_t now, unsigned *others)
{
    const ebpfMonCaLink *set = setOf(pid, channel), *newest = NULL;

    *others = 0;
    for (int i = 0; i < WAYS; i++) {
        const ebpfMonCaLink *l = &set[i];

        /* one that is sent while the put is being told of may be the later one by its time */
        if (l->pid != pid || (l->at < now && now - l->at > LIFE) || strcmp(l->channel, channel) != 0)
            continue;
        if (!newest || l->at > newest->at)
            newest = l;
    }
    for (int i = 0; newest && i < WAYS; i++)
        *others += &set[i] != newest && set[i].pid == pid && newest->at - set[i].at < CLOSE &&
                   strcmp(set[i].channel, channel) == 0;
    return newest;
}
