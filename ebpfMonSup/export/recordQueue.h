/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of any length on their way to a thread: a ring of bytes of fixed size, one reader. Whoever adds takes one
 * lock for as long as a copy of some hundred bytes takes, and wakes the reader only when that sleeps.
 */
#ifndef EBPFMON_RECORDQUEUE_H
#define EBPFMON_RECORDQUEUE_H

#include <stddef.h>
#include <stdint.h>

typedef struct ebpfMonRecordQueue ebpfMonRecordQueue;

/* NULL without memory. It stays for ever: something may be on its way in. */
ebpfMonRecordQueue *ebpfMonRecordQueueNew(size_t size);

void ebpfMonRecordQueueClear(ebpfMonRecordQueue *queue);

/* Any thread. What does not fit is counted and dropped. */
void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *queue, const void *record, size_t len);

/* Wakes the reader. */
void ebpfMonRecordQueueWake(ebpfMonRecordQueue *queue);

/* The reader: moves whole records, each behind its length (size_t), into buf; bytes used. */
size_t ebpfMonRecordQueueTake(ebpfMonRecordQueue *queue, uint8_t *buf, size_t size);

/* The reader: sleeps. deep: until something is added, else only for the time. */
void ebpfMonRecordQueueWait(ebpfMonRecordQueue *queue, double seconds, int deep);

typedef struct {
    uint64_t taken, dropped; /* records accepted, records that did not fit */
    size_t   used;           /* bytes now */
    size_t   peak;           /* the most since the last look */
} ebpfMonRecordQueueState;

void ebpfMonRecordQueueGetState(ebpfMonRecordQueue *queue, ebpfMonRecordQueueState *state);

#endif
