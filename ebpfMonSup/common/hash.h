/* SPDX-License-Identifier: BSD-3-Clause */
/* Hashes for our own tables: FNV-1a (Fowler, Noll, Vo), and a multiplication that spreads integers. No state; any
 * thread. */
#ifndef EBPFMON_HASH_H
#define EBPFMON_HASH_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_FNV32_BEGIN 2166136261u
#define EBPFMON_FNV64_BEGIN 0xcbf29ce484222325ull

/* "hash": EBPFMON_FNV32_BEGIN, or the result so far. */
static inline uint32_t ebpfMonHashFnv32(uint32_t hash, const void *data, size_t length)
{
    const unsigned char *p = (const unsigned char *)data; /* C++ wants the cast */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ p[i]) * 16777619u;
    return hash;
}

/* "hash": EBPFMON_FNV64_BEGIN, or the result so far. */
static inline uint64_t ebpfMonHashFnv64(uint64_t hash, const void *data, size_t length)
{
    const unsigned char *p = (const unsigned char *)data; /* C++ wants the cast */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ p[i]) * 0x100000001b3ull;
    return hash;
}

/* Spreads an integer over 64 bits. The high bits are the best ones (Knuth, The Art of Computer Programming 3, 6.4:
 * multiplication by the golden ratio). */
static inline uint64_t ebpfMonHashInteger(uint64_t value)
{
    return value * 0x9e3779b97f4a7c15ull;
}

/* Spreads each bit of an integer over all 64 bits; different integers have different results. It is the finalizer of
 * MurmurHash3 (Appleby, public domain). */
static inline uint64_t ebpfMonHashMix(uint64_t value)
{
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdull;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53ull;
    return value ^ value >> 33;
}

#endif
