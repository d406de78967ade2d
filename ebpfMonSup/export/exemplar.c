/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "export/exemplar.h"

#define PROBES 16

static unsigned place(const char *ioc, const char *root)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (; *root; root++)
        h = (h ^ (unsigned char)*root) * 16777619u;
    for (; *ioc; ioc++)
        h = (h ^ (unsigned char)*ioc) * 16777619u;
    return h % EBPFMON_EXEMPLARS;
}

static int is(const ebpfMonExemplar *e, const char *ioc, const char *root)
{
    return strcmp(e->root, root) == 0 && strcmp(e->ioc, ioc) == 0;
}

void ebpfMonExemplarAdd(ebpfMonExemplars *all, const ebpfMonSpan *span)
{
    double value = span->end > span->start ? (double)(span->end - span->start) / 1000 : 0;
    unsigned at = place(span->service.name, span->root);

    for (unsigned i = 0; span->root[0] && i < PROBES; i++, at = (at + 1) % EBPFMON_EXEMPLARS) {
        ebpfMonExemplar *e = &all->of[at];

        if (e->root[0] && !is(e, span->service.name, span->root))
            continue;
        if (e->root[0] && value <= e->value)
            return;
        all->used += !e->root[0];
        strcpy(e->ioc, span->service.name);
        strcpy(e->root, span->root);
        memcpy(e->trace, span->trace, sizeof(e->trace));
        memcpy(e->id, span->id, sizeof(e->id));
        e->time = span->end;
        e->value = value;
        return;
    }
}

const ebpfMonExemplar *ebpfMonExemplarFind(const ebpfMonExemplars *all, const char *ioc, const char *root)
{
    const ebpfMonExemplar *slowest = NULL;
    unsigned at = place(ioc, root);

    if (!all->used)
        return NULL;
    for (unsigned i = 0; root[0] && ioc[0] && i < PROBES; i++, at = (at + 1) % EBPFMON_EXEMPLARS)
        if (is(&all->of[at], ioc, root))
            return &all->of[at];
    for (unsigned i = 0; !ioc[0] && i < EBPFMON_EXEMPLARS; i++) {
        const ebpfMonExemplar *e = &all->of[i];

        if (e->root[0] && (!root[0] || strcmp(e->root, root) == 0) && (!slowest || e->value > slowest->value))
            slowest = e;
    }
    return slowest;
}

void ebpfMonExemplarClear(ebpfMonExemplars *all)
{
    if (all->used)
        memset(all, 0, sizeof(*all));
}
