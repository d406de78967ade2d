/* SPDX-License-Identifier: BSD-3-Clause */
/* How closely an IOC is watched. Each level includes the ones before it; FILTER_LEVEL has the same order. */
#ifndef EBPFMON_LEVEL_H
#define EBPFMON_LEVEL_H

typedef enum {
    ebpfMonLevelOff,
    ebpfMonLevelPuts,   /* every write */
    ebpfMonLevelCounts, /* + processings of every record */
    ebpfMonLevelChains, /* + latency and lock wait of every chain, slow ones kept whole */
    ebpfMonLevelTrace,  /* + every chain (or one in N) kept whole, however fast */
    ebpfMonLevelCount
} ebpfMonLevel;

#define EBPFMON_LEVEL_RULES_MAX 64 /* levels and reference counts that commands set, in force at one time */

const char *ebpfMonLevelName(ebpfMonLevel level);

/* The level called "name" (not case sensitive), or -1. */
int ebpfMonLevelParse(const char *name);

#endif
