/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "export/otlp/exemplar.h"

#define PROBES 16

static unsigned getPlace(const char *ioc, const char *root)
{
    uint32_t hash = ebpfMonHashFnv32(EBPFMON_FNV32_BEGIN, root, strlen(root));

    return ebpfMonHashFnv32(hash, ioc, strlen(ioc)) % EBPFMON_EXEMPLARS;
}

/* Finds the place of this root, or else a free place. NULL: there is neither. */
static const ebpfMonExemplar *findPlace(const ebpfMonExemplars *all, const char *ioc, const char *root)
{
    const ebpfMonExemplar *empty = NULL;
    unsigned at = getPlace(ioc, root);

    for (unsigned i = 0; i < PROBES; i++, at = (at + 1) % EBPFMON_EXEMPLARS) {
        const ebpfMonExemplar *e = &all->of[at];

        if (strcmp(e->root, root) == 0 && strcmp(e->ioc, ioc) == 0)
            return e;
        if (!empty && !e->root[0])
            empty = e;
    }
    return empty;
}

void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span)
{
    double value = (double)span->latency / 1000;
    const ebpfMonExemplar *at = span->root[0] ? findPlace(all, span->service.name, span->root) : NULL;
    ebpfMonExemplar *e = at ? &all->of[at - all->of] : NULL;

    if (!e || (e->root[0] && value <= e->value))
        return;
    all->used += !e->root[0];
    strcpy(e->ioc, span->service.name);
    strcpy(e->root, span->root);
    memcpy(e->trace, span->trace, sizeof(e->trace));
    memcpy(e->id, span->id, sizeof(e->id));
    e->time = span->end;
    e->value = value;
}

const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root,
                                           uint64_t counted)
{
    const ebpfMonExemplar *slowest = NULL;

    if (!all->used)
        return NULL;
    if (root[0] && ioc[0]) {
        const ebpfMonExemplar *e = findPlace(all, ioc, root);

        return e && e->root[0] && e->time <= counted ? e : NULL;
    }
    for (unsigned i = 0; !ioc[0] && i < EBPFMON_EXEMPLARS; i++) {
        const ebpfMonExemplar *e = &all->of[i];

        if (e->root[0] && e->time <= counted && (!root[0] || strcmp(e->root, root) == 0) &&
            (!slowest || e->value > slowest->value))
            slowest = e;
    }
    return slowest;
}

void ebpfMonExemplarClear(ebpfMonExemplars *all, uint64_t counted)
{
    for (unsigned i = 0; all->used && i < EBPFMON_EXEMPLARS; i++) {
        ebpfMonExemplar *e = &all->of[i];

        if (e->root[0] && e->time <= counted) {
            e->root[0] = 0;
            all->used--;
        }
    }
}
