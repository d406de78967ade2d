/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "wire/memoryAccount.h"

#define KEEP_MIN 256 /* bytes; room for any header, and a name */

void ebpfMonMemoryAccountStart(ebpfMonMemoryAccount *a, const ebpfMonWireLimits *limits, ebpfMonWireSink sink,
    void *arg)
{
    ebpfMonWireLimits *l = &a->limits;

    *a = (ebpfMonMemoryAccount){ .sink = sink, .arg = arg, .lossAt = UINT64_MAX };
    if (limits)
        *l = *limits;
    if (!l->circuits)
        l->circuits = 4096;
    if (!l->channels)
        l->channels = 20000;
    if (!l->keep)
        l->keep = 65536;
    if (l->keep < KEEP_MIN)
        l->keep = KEEP_MIN;
    if (!l->pending)
        l->pending = 1 << 20;
    if (!l->total)
        l->total = 64 << 20;
}

static void ignoreEvent(void *arg, const ebpfMonWireEvent *event)
{
    (void)arg;
    (void)event;
}

void ebpfMonMemoryAccountMute(ebpfMonMemoryAccount *a)
{
    a->sink = ignoreEvent;
}

void *ebpfMonMemoryAccountAlloc(ebpfMonMemoryAccount *a, size_t size)
{
    void *p;

    if (size > a->limits.total || a->stats.memory > a->limits.total - size)
        return NULL;
    p = malloc(size);
    if (p)
        a->stats.memory += size;
    return p;
}

void ebpfMonMemoryAccountFree(ebpfMonMemoryAccount *a, void *p, size_t size)
{
    if (!p)
        return;
    a->stats.memory -= size;
    free(p);
}

void ebpfMonMemoryAccountEmit(ebpfMonMemoryAccount *a, ebpfMonWireEvent *e)
{
    const char **text[] = { &e->user, &e->host, &e->name, &e->options, &e->text, &e->message };

    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++)
        if (!*text[i])
            *text[i] = "";
    a->sink(a->arg, e);
}
