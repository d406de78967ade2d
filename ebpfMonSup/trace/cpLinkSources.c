/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "trace/cpLinkSources.h"
#include "ioc/layout.h"

#define STAMPS 16384 /* a power of two */

/* The newest one of its hash. */
static struct {
    uint64_t stamp;
    ebpfMonChainId chain;
    uint32_t root, place, index;
} noted[STAMPS];

/* By the record as well: many can have one stamp, an event's or another record's (TSE, TSEL). */
static unsigned hash(uint32_t iocId, uint32_t index, uint64_t stamp)
{
    return (unsigned)(((stamp ^ (uint64_t)index << 20 ^ (uint64_t)iocId << 44) * 0x9e3779b97f4a7c15ull) >> 40) % STAMPS;
}

void ebpfMonCpLinkSourcesAdd(const ebpfMonChainId *chain, uint32_t root, uint32_t place, uint32_t index, uint64_t stamp)
{
    unsigned at = hash(chain->iocId, index, stamp);

    noted[at].stamp = stamp;
    noted[at].chain = *chain;
    noted[at].root = root;
    noted[at].place = place;
    noted[at].index = index;
}

/* The PV that the link leads to, without its field. struct caLink is private to dbCa.c, and not the same in all versions:
 * of its pointers one is to a link field of that record. */
static int recordOf(ebpfMonTarget *t, uint32_t root, const uint8_t *caLink, char *name, size_t size)
{
    for (unsigned at = 0; at + 8 <= EBPFMON_CALINK_SIZE; at += 8) {
        struct layoutPvLink link;
        uint32_t index = UINT32_MAX;
        uint64_t addr;

        memcpy(&addr, caLink + at, sizeof(addr));
        if (!ebpfMonCatalogueFieldAt(t->cat, addr, &index) || index != root)
            continue;
        if (ebpfMonMemReadNow(t->pid, addr, &link, sizeof(link)) || link.type != LAYOUT_LINK_CA ||
            link.precord != t->cat->rec[root].addr ||
            ebpfMonMemReadNow(t->pid, link.pvname, name, size))
            return -1;
        name[size - 1] = 0;
        name[strcspn(name, ".")] = 0;
        return 0;
    }
    return -1;
}

/* The chain that stamped this record as the link has it. */
static int find(const ebpfMonTarget *from, uint32_t index, const uint8_t *link, unsigned *place)
{
    for (unsigned at = 0; at + 8 <= EBPFMON_CALINK_SIZE; at += 4) {
        uint64_t stamp;
        unsigned i;

        memcpy(&stamp, link + at, sizeof(stamp));
        i = hash(from->iocId, index, stamp);
        if (stamp && noted[i].stamp == stamp && noted[i].index == index && noted[i].chain.iocId == from->iocId) {
            *place = i;
            return 1;
        }
    }
    return 0;
}

int ebpfMonCpLinkSourcesFind(ebpfMonTarget *t, uint32_t root, const uint8_t *link, ebpfMonCpLinkSource *source)
{
    char name[EBPFMON_NAME_SIZE + 8];

    if (recordOf(t, root, link, name, sizeof(name)))
        return -1;
    for (const ebpfMonTarget *from = ebpfMonTargetsGetFirst(ebpfMonTheTargets); from; from = from->next) {
        long index = from->cat ? ebpfMonCatalogueFind(from->cat, name) : -1;
        unsigned i;

        if (index < 0 || !find(from, (uint32_t)index, link, &i))
            continue;
        source->chain = noted[i].chain;
        source->place = noted[i].place;
        snprintf(source->record, sizeof(source->record), "%s", ebpfMonCatalogueName(from->cat, noted[i].index));
        snprintf(source->root, sizeof(source->root), "%s",
                 noted[i].root < from->cat->count ? ebpfMonCatalogueName(from->cat, noted[i].root) : source->record);
        snprintf(source->ioc, sizeof(source->ioc), "%s", from == t ? "" : from->name);
        return 0;
    }
    return -1;
}
