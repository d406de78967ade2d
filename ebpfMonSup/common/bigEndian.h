/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads and writes numbers in network byte order, which need not be aligned. No state; any thread. */
#ifndef EBPFMON_BIGENDIAN_H
#define EBPFMON_BIGENDIAN_H

#include <stdint.h>

static inline uint16_t ebpfMonBigEndianGet16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t ebpfMonBigEndianGet32(const uint8_t *p)
{
    return (uint32_t)ebpfMonBigEndianGet16(p) << 16 | ebpfMonBigEndianGet16(p + 2);
}

static inline void ebpfMonBigEndianSet16(uint8_t *p, unsigned value)
{
    p[0] = (uint8_t)(value >> 8);
    p[1] = (uint8_t)value;
}

static inline void ebpfMonBigEndianSet32(uint8_t *p, uint32_t value)
{
    ebpfMonBigEndianSet16(p, value >> 16);
    ebpfMonBigEndianSet16(p + 2, value & 0xffff);
}

#endif
