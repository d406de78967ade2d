/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "history/historyRing.h"

int ebpfMonHistoryRingInit(ebpfMonHistoryRing *r, size_t size)
{
    *r = (ebpfMonHistoryRing){ .bytes = malloc(size), .size = size };
    return r->bytes ? 0 : -1;
}

static void copyIn(ebpfMonHistoryRing *r, const void *from, size_t length)
{
    size_t at = r->end % r->size, first = length < r->size - at ? length : r->size - at;

    memcpy(r->bytes + at, from, first);
    memcpy(r->bytes, (const char *)from + first, length - first);
    r->end += length;
}

static void copyOut(const ebpfMonHistoryRing *r, uint64_t from, void *to, size_t length)
{
    size_t at = from % r->size, first = length < r->size - at ? length : r->size - at;

    memcpy(to, r->bytes + at, first);
    memcpy((char *)to + first, r->bytes, length - first);
}

static uint32_t getLength(const ebpfMonHistoryRing *r, uint64_t at)
{
    uint32_t length;

    copyOut(r, at, &length, sizeof(length));
    return length;
}

void ebpfMonHistoryRingAdd(ebpfMonHistoryRing *r, const struct iovec *part, int parts)
{
    uint32_t length = 0;

    for (int i = 0; i < parts; i++)
        length += (uint32_t)part[i].iov_len;
    if (sizeof(length) + length > r->size)
        return;
    while (r->end - r->first + sizeof(length) + length > r->size)
        r->first += sizeof(length) + getLength(r, r->first);
    copyIn(r, &length, sizeof(length));
    for (int i = 0; i < parts; i++)
        copyIn(r, part[i].iov_base, part[i].iov_len);
}

size_t ebpfMonHistoryRingRead(const ebpfMonHistoryRing *r, uint64_t *at, uint64_t end, void *buf, size_t size)
{
    uint32_t length;

    if (*at < r->first)
        *at = r->first;
    if (*at >= end)
        return 0;
    length = getLength(r, *at);
    if (length > size)
        return 0;
    copyOut(r, *at + sizeof(length), buf, length);
    *at += sizeof(length) + length;
    return length;
}
