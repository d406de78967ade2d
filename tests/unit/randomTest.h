/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers that are the same in each run, so a failure can be repeated. */
#ifndef EBPFMON_RANDOMTEST_H
#define EBPFMON_RANDOMTEST_H

#include <stdint.h>

static uint64_t seed = 88172645463325252ull;

/* Marsaglia's xorshift64. */
static inline uint64_t random64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

#endif
