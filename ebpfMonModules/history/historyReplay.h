/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shows a file of the history by the PVs of the monitor, as they were at a time that operators set: puts, unexpected
 * puts, events and IOCs. No host is watched meanwhile. What a history does not have stays INVALID.
 */
#ifndef EBPFMON_HISTORYREPLAY_H
#define EBPFMON_HISTORYREPLAY_H

#include <stddef.h>

/* Once, before iocInit. "prefix": of the PVs, also of ebpfMonReplay.db, which set the time. 0; -1: "why" says what is
 * wrong. */
int ebpfMonHistoryReplay(const char *file, const char *prefix, char *why, size_t size);

#endif
