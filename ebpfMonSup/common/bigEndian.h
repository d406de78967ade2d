/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads numbers in network byte order, which need not be aligned. No state; any thread. */
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

#endif
