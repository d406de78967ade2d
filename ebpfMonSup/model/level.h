/* SPDX-License-Identifier: BSD-3-Clause */
/* How closely an IOC is watched. Each level includes those before it; FILTER_LEVEL has the same order. */
#ifndef EBPFMON_LEVEL_H
#define EBPFMON_LEVEL_H

typedef enum {
    ebpfMonLevelOff,
    ebpfMonLevelPuts,   /* every put */
    ebpfMonLevelCounts, /* and the processings of every record */
    ebpfMonLevelChains, /* and the latency and lock wait of every chain; slow chains are kept whole */
    ebpfMonLevelTrace,  /* and every chain (or one in N) is kept whole */
    ebpfMonLevelCount
} ebpfMonLevel;

#define EBPFMON_LEVEL_RULES_MAX 64 /* levels and reference counts that commands can set at a time */

/* The name of a level, "?" if it does not exist. Any thread. */
const char *ebpfMonLevelName(ebpfMonLevel level);

/* The level with this name; upper and lower case are the same. -1: there is none. */
int ebpfMonLevelParse(const char *name);

#endif
