/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cpLinkSources.h"
#include "ioc/baseLayout.h"
#include "ioc/baseLink.h"

#define STAMPS 16384 /* a power of two */

typedef struct {
    uint64_t stamp;
    ebpfMonChainId chain;
    uint32_t root, place, index;
} stampedRecord;

struct ebpfMonCpLinkSources {
    ebpfMonTargets *targets;
    stampedRecord stamped[STAMPS]; /* by hash; the newest record of each hash */
};

ebpfMonCpLinkSources *ebpfMonCpLinkSourcesNew(ebpfMonTargets *targets)
{
    ebpfMonCpLinkSources *sources = calloc(1, sizeof(*sources));

    if (sources)
        sources->targets = targets;
    return sources;
}

void ebpfMonCpLinkSourcesFree(ebpfMonCpLinkSources *sources)
{
    free(sources);
}

/* The record is part of the hash: many records can have one time stamp, that of an event or of another record (TSE,
 * TSEL). */
static unsigned hashStamp(uint32_t iocId, uint32_t index, uint64_t stamp)
{
    return (unsigned)(ebpfMonHashInteger(stamp ^ (uint64_t)index << 20 ^ (uint64_t)iocId << 44) >> 40) % STAMPS;
}

void ebpfMonCpLinkSourcesAdd(ebpfMonCpLinkSources *sources, const ebpfMonChainId *chain, uint32_t root, uint32_t place,
                             uint32_t index, uint64_t stamp)
{
    sources->stamped[hashStamp(chain->iocId, index, stamp)] =
        (stampedRecord){ .stamp = stamp, .chain = *chain, .root = root, .place = place, .index = index };
}

/* The PV that the link leads to, without its field. struct caLink is private to dbCa.c and differs between versions of
 * Base; in each of them one of its pointers leads to a link field of the record. */
static int readLinkedRecord(ebpfMonTarget *t, uint32_t root, ebpfMonCpLink *caLink)
{
    char name[sizeof(caLink->name)];

    for (unsigned at = 0; at + 8 <= EBPFMON_CALINK_SIZE; at += 8) {
        ebpfMonLink link;
        uint32_t index = UINT32_MAX;
        uint64_t addr;

        memcpy(&addr, caLink->start + at, sizeof(addr));
        if (!ebpfMonCatalogueFieldAt(t->cat, addr, &index) || index != root)
            continue;
        if (ebpfMonLinkReadLate(t->eventThread.reads, t->pid, t->cat->base, addr, &link) ||
            link.type != EBPFMON_LINK_CA || link.owner != t->cat->rec[root].addr ||
            ebpfMonLateReadsGetBytes(t->eventThread.reads, t->pid, link.pvname, name, sizeof(name)))
            return -1;
        name[sizeof(name) - 1] = 0;
        name[strcspn(name, ".")] = 0;
        memcpy(caLink->name, name, sizeof(name));
        return name[0] ? 0 : -1;
    }
    return -1;
}

/* The note of the record whose time stamp is somewhere in the struct caLink. NULL: none. */
static const stampedRecord *findStamp(const ebpfMonCpLinkSources *sources, const ebpfMonTarget *from, uint32_t index,
                                      const uint8_t *caLink)
{
    for (unsigned at = 0; at + 8 <= EBPFMON_CALINK_SIZE; at += 4) {
        const stampedRecord *s;
        uint64_t stamp;

        memcpy(&stamp, caLink + at, sizeof(stamp));
        s = &sources->stamped[hashStamp(from->iocId, index, stamp)];
        if (stamp && s->stamp == stamp && s->index == index && s->chain.iocId == from->iocId)
            return s;
    }
    return NULL;
}

ebpfMonCpLinkResult ebpfMonCpLinkSourcesFind(const ebpfMonCpLinkSources *sources, ebpfMonTarget *t, uint32_t root,
                                             ebpfMonCpLink *link, ebpfMonCpLinkSource *source)
{
    ebpfMonCpLinkResult result = ebpfMonCpLinkUnknown;

    if (!link->name[0] && readLinkedRecord(t, root, link))
        return ebpfMonLateReadsAreWanted(t->eventThread.reads) ? ebpfMonCpLinkAwaited : ebpfMonCpLinkUnknown;
    for (const ebpfMonTarget *from = ebpfMonTargetsGetFirst(sources->targets); from; from = from->next) {
        long index = from->cat ? ebpfMonCatalogueFind(from->cat, link->name) : -1;
        const stampedRecord *s = index >= 0 ? findStamp(sources, from, (uint32_t)index, link->start) : NULL;

        if (index >= 0 && from->level >= ebpfMonLevelChains && !from->gone) {
            link->sourcePid = (uint32_t)from->pid;
            result = ebpfMonCpLinkAwaited;
        }
        if (!s)
            continue;
        source->chain = s->chain;
        source->place = s->place;
        snprintf(source->record, sizeof(source->record), "%s", ebpfMonCatalogueName(from->cat, s->index));
        snprintf(source->root, sizeof(source->root), "%s",
                 s->root < from->cat->count ? ebpfMonCatalogueName(from->cat, s->root) : source->record);
        snprintf(source->ioc, sizeof(source->ioc), "%s", from == t ? "" : from->name);
        return ebpfMonCpLinkFound;
    }
    return result;
}
