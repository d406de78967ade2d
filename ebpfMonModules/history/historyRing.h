/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of any length in memory of a fixed size: a new one pushes out the oldest. The caller has a lock, if several
 * threads use it. */
#ifndef EBPFMON_HISTORYRING_H
#define EBPFMON_HISTORYRING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct {
    uint8_t *bytes;
    size_t   size;
    uint64_t first, end;   /* bytes since the begin: of the oldest entry, and after the newest one */
} ebpfMonHistoryRing;

/* 0, or -1 without memory. Never freed. */
int ebpfMonHistoryRingInit(ebpfMonHistoryRing *ring, size_t size);

/* Adds an entry of these parts. One that is larger than the ring is left out. */
void ebpfMonHistoryRingAdd(ebpfMonHistoryRing *ring, const struct iovec *part, int parts);

/* Copies the entry at *at, or the oldest one if that is gone, and moves *at behind it. Returns its length; 0: there is
 * none before "end", or it is larger than "size". */
size_t ebpfMonHistoryRingRead(const ebpfMonHistoryRing *ring, uint64_t *at, uint64_t end, void *buf, size_t size);

#endif
