/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "wire/assembly.h"

#define FNV_BASIS 14695981039346656037ull
#define FNV_PRIME 1099511628211ull
#define ROOM_MIN  256

void ebpfMonAssemblyClear(ebpfMonMemoryAccount *account, ebpfMonAssembly *a)
{
    ebpfMonMemoryAccountFree(account, a->buf, a->room);
    a->buf = NULL;
    a->have = a->room = 0;
    a->total = a->done = 0;
    a->holed = 0;
}

int ebpfMonAssemblyKeep(ebpfMonMemoryAccount *account, ebpfMonAssembly *a, const uint8_t *p, size_t n)
{
    if (a->have + n > a->room) {
        size_t room = a->room ? a->room * 2 : ROOM_MIN;
        uint8_t *buf;

        if (room < a->have + n)
            room = a->have + n;
        buf = ebpfMonMemoryAccountAlloc(account, room);
        if (!buf)
            return 0;
        if (a->buf)
            memcpy(buf, a->buf, a->have);
        ebpfMonMemoryAccountFree(account, a->buf, a->room);
        a->buf = buf;
        a->room = room;
    }
    memcpy(a->buf + a->have, p, n);
    a->have += n;
    return 1;
}

void ebpfMonAssemblyForget(ebpfMonAssembly *a, size_t n, size_t segAt)
{
    if (!n)
        return;
    memmove(a->buf, a->buf + n, a->have - n);
    a->have -= n;
    a->seq += (uint32_t)n;
    a->skipped += n;
    a->atStart = n == segAt;
    a->fresh = 0;
}

/* Of "n" bytes at "at" of a message those that lie within from … to. */
static void hashOn(uint64_t *hash, const uint8_t *p, size_t at, size_t n, size_t from, size_t to)
{
    uint64_t h = *hash;

    if (!n)
        return;
    if (at < from) {
        size_t cut = from - at < n ? from - at : n;

        p += cut;
        n -= cut;
        at += cut;
    }
    if (at >= to)
        return;
    if (n > to - at)
        n = to - at;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * FNV_PRIME;
    *hash = h;
}

void ebpfMonAssemblyFramed(ebpfMonAssembly *a, const ebpfMonFrame *f)
{
    a->total = f->total;
    a->hashFrom = f->hashFrom;
    a->hashTo = f->hashTo ? f->hashTo : f->total;
    a->hash = FNV_BASIS;
    a->done = a->have;
    hashOn(&a->hash, a->buf, 0, a->have, a->hashFrom, a->hashTo);
}

void ebpfMonAssemblyHash(ebpfMonAssembly *a, const uint8_t *p, size_t n)
{
    hashOn(&a->hash, p, a->done, n, a->hashFrom, a->hashTo);
}

uint64_t ebpfMonAssemblyHashWhole(const uint8_t *p, const ebpfMonFrame *f)
{
    size_t to = f->hashTo ? f->hashTo : f->total;
    uint64_t hash = FNV_BASIS;

    for (size_t i = f->hashFrom; i < to; i++)
        hash = (hash ^ p[i]) * FNV_PRIME;
    return hash;
}
