/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads a pvAccess message, and never outside of it: each length in the message is compared with the length of the
 * message. A read can fail in two ways: "bad", the message contradicts itself; "cut", the message continues after the
 * part that was kept. After either, everything reads as zero. (pvAccess Protocol Specification, Data Encoding.)
 */
#ifndef EBPFMON_PVABUF_H
#define EBPFMON_PVABUF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PVA_NULL SIZE_MAX /* the "null" size */

typedef struct {
    const uint8_t *p;
    size_t pos, have, total; /* position; bytes that we have; bytes of the whole message. pos may be greater than
                              * "have", because to skip bytes we need not have them */
    int    big;              /* nonzero: the message is big-endian */
    int    bad, cut;
} pvaBuf;

static inline size_t pvaLeft(const pvaBuf *buf)
{
    return buf->bad ? 0 : buf->total - buf->pos;
}

static inline int pvaFailed(const pvaBuf *buf)
{
    return buf->bad || buf->cut;
}

static inline void pvaSkip(pvaBuf *buf, size_t size)
{
    if (size > pvaLeft(buf)) {
        buf->bad = 1;
    } else {
        buf->pos += size;
    }
}

/* Takes the next "size" bytes. NULL: they are not there. */
static inline const uint8_t *pvaTake(pvaBuf *buf, size_t size)
{
    size_t at = buf->pos;

    if (pvaFailed(buf) || size > pvaLeft(buf)) {
        buf->bad |= !buf->cut;
        return NULL;
    }
    if (at > buf->have || size > buf->have - at) {
        buf->cut = 1;
        return NULL;
    }
    buf->pos += size;
    return buf->p + at;
}

/* The number in the "size" bytes (at most 8) at "p". */
static inline uint64_t pvaNumber(const uint8_t *p, unsigned size, int big)
{
    uint64_t value = 0;
    unsigned i;

    for (i = 0; i < size; i++) {
        value = value << 8 | p[big ? i : size - 1 - i];
    }
    return value;
}

static inline uint64_t pvaGet(pvaBuf *buf, unsigned size)
{
    const uint8_t *p = pvaTake(buf, size);

    return p ? pvaNumber(p, size, buf->big) : 0;
}

/* Reads a size, which takes one, five or thirteen bytes. PVA_NULL: null. A size greater than the message fails where it
 * is used. */
static inline size_t pvaSize(pvaBuf *buf)
{
    uint64_t size = pvaGet(buf, 1);

    if (size == 255) {
        return PVA_NULL;
    }
    if (size == 254) {
        size = pvaGet(buf, 4);
        if (size == INT32_MAX) {
            size = pvaGet(buf, 8);
        }
        if (size > INT32_MAX) {
            buf->bad = 1;
            return 0;
        }
    }
    return size;
}

/* Reads a string, which does not end with a zero. A null string is empty. NULL: it failed. */
static inline const char *pvaString(pvaBuf *buf, size_t *length)
{
    size_t size = pvaSize(buf);

    *length = size == PVA_NULL ? 0 : size;
    const char *string = (const char *)pvaTake(buf, *length);
    if (!string) {
        *length = 0;
    }
    return string;
}

typedef struct {
    const uint8_t *p;
    size_t size;
    int    big;
} pvaBits;

static inline int pvaBitsGet(pvaBuf *buf, pvaBits *bits)
{
    size_t size = pvaSize(buf);

    bits->size = size == PVA_NULL ? 0 : size;
    bits->big = buf->big;
    bits->p = pvaTake(buf, bits->size);
    return bits->p ? 0 : -1;
}

/* Nonzero: bit i is set. Whole groups of eight bytes are numbers in the byte order of the message; the bytes after them
 * are single bytes (BitSet::serialize of pvData). */
static inline int pvaBit(const pvaBits *bits, unsigned i)
{
    size_t byte = i / 8;

    if (byte >= bits->size) {
        return 0;
    }
    if (bits->big && byte < (bits->size & ~(size_t)7)) {
        byte = (byte & ~(size_t)7) | (7 - (byte & 7));
    }
    return bits->p[byte] >> (i & 7) & 1;
}

#endif
