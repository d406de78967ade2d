/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of any length on their way to a thread: a ring of bytes of fixed size, one reader. Whoever adds holds a lock
 * for as long as it takes to copy some hundred bytes, and wakes the reader only when that sleeps.
 */
#ifndef EBPFMON_RECORDQUEUE_H
#define EBPFMON_RECORDQUEUE_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_RECORD_QUEUE_SHARES 1023

typedef struct ebpfMonRecordQueue ebpfMonRecordQueue;

/* "size" in bytes. NULL without memory. */
ebpfMonRecordQueue *ebpfMonRecordQueueNew(size_t size);

/* Nobody may use it any more. NULL does no harm. */
void ebpfMonRecordQueueFree(ebpfMonRecordQueue *queue);

/* Drops all records, not counted. There must be no reader at that time. */
void ebpfMonRecordQueueClear(ebpfMonRecordQueue *queue);

/* Any thread. What does not fit is counted and dropped. "whose": 0, or whose record this is, up to EBPFMON_RECORD_QUEUE_SHARES:
 * nobody may have more in the queue than four times what is free, so that one who adds too much leaves room for others
 * (as struct ebpfMonShare, bpf/ebpfMonTable.h). */
void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *queue, unsigned whose, const void *record, size_t len);

/* Any thread. Wakes the reader; one call is remembered while it does not sleep. */
void ebpfMonRecordQueueWake(ebpfMonRecordQueue *queue);

/* Whose it is, by the name of an IOC: two of the same hash share one. Never 0. */
unsigned ebpfMonRecordQueueShareOf(const char *name);

/* The reader: moves whole records, each behind its length (size_t), into buf. Returns the bytes used. */
size_t ebpfMonRecordQueueRead(ebpfMonRecordQueue *queue, uint8_t *buf, size_t size);

/* The reader sleeps for "seconds", or until it is woken. Nonzero "untilAdded": it does not sleep while there are
 * records, and the next record wakes it. Zero: records do not wake it, which costs those who add less. */
void ebpfMonRecordQueueWait(ebpfMonRecordQueue *queue, double seconds, int untilAdded);

typedef struct {
    uint64_t accepted, dropped; /* records that fitted, that did not fit */
    size_t   used;              /* bytes now */
    size_t   peak;              /* the most since the last call */
} ebpfMonRecordQueueState;

/* Any thread. */
void ebpfMonRecordQueueGetState(ebpfMonRecordQueue *queue, ebpfMonRecordQueueState *state);

#endif
