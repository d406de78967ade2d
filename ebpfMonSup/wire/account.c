/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "wire/account.h"

#define KEEP_MIN 256 /* bytes: any header, and a name */

void ebpfMonAccountStart(ebpfMonAccount *a, const ebpfMonWireLimits *limits, ebpfMonWireSink sink, void *arg)
{
    ebpfMonWireLimits *l = &a->limits;

    *a = (ebpfMonAccount){ .sink = sink, .arg = arg };
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

static void nothing(void *arg, const ebpfMonWireEvent *event)
{
    (void)arg;
    (void)event;
}

void ebpfMonAccountMute(ebpfMonAccount *a)
{
    a->sink = nothing;
}

void *ebpfMonAccountAlloc(ebpfMonAccount *a, size_t size)
{
    void *p;

    if (size > a->limits.total || a->stats.memory > a->limits.total - size)
        return NULL;
    p = malloc(size);
    if (p)
        a->stats.memory += size;
    return p;
}

void ebpfMonAccountFree(ebpfMonAccount *a, void *p, size_t size)
{
    if (!p)
        return;
    a->stats.memory -= size;
    free(p);
}

void ebpfMonAccountEmit(ebpfMonAccount *a, ebpfMonWireEvent *e)
{
    const char **text[] = { &e->user, &e->host, &e->name, &e->options, &e->text, &e->message };

    for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++)
        if (!*text[i])
            *text[i] = "";
    a->sink(a->arg, e);
}
