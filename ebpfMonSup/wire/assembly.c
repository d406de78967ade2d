/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/hash.h"
#include "wire/assembly.h"

#define SHORT 16 /* bytes of a header of Channel Access, which is longer than that of pvAccess */

#define ROOM_MIN 256

void ebpfMonAssemblyClear(ebpfMonMemoryAccount *account, ebpfMonAssembly *a)
{
    account->stats.waiting -= a->buf != NULL;
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
        account->stats.waiting += !a->buf;
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

int ebpfMonAssemblyCounts(ebpfMonAssembly *a, size_t n)
{
    if (n < SHORT) {
        a->shortBytes += (unsigned)n;
        if (a->shortBytes < SHORT)
            return 0;
        a->shortBytes -= SHORT;
    }
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

/* The "n" bytes are at place "at" of a message. Adds those of them to the hash that are between "from" and "to". */
static void addToHash(uint64_t *hash, const uint8_t *p, size_t at, size_t n, size_t from, size_t to)
{
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
    *hash = ebpfMonHashFnv64(*hash, p, n);
}

void ebpfMonAssemblyFramed(ebpfMonAssembly *a, const ebpfMonFrame *f)
{
    a->total = f->total;
    a->hashFrom = f->hashFrom;
    a->hashTo = f->hashTo ? f->hashTo : f->total;
    a->hash = EBPFMON_FNV64_BEGIN;
    a->done = a->have;
    addToHash(&a->hash, a->buf, 0, a->have, a->hashFrom, a->hashTo);
}

void ebpfMonAssemblyHash(ebpfMonAssembly *a, const uint8_t *p, size_t n)
{
    addToHash(&a->hash, p, a->done, n, a->hashFrom, a->hashTo);
}

uint64_t ebpfMonAssemblyHashWhole(const uint8_t *p, const ebpfMonFrame *f)
{
    size_t to = f->hashTo ? f->hashTo : f->total;

    return f->hashFrom < to ? ebpfMonHashFnv64(EBPFMON_FNV64_BEGIN, p + f->hashFrom, to - f->hashFrom) :
        EBPFMON_FNV64_BEGIN;
}
