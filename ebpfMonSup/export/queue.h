/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts on their way to the writer: a ring of bytes of fixed size, one writer thread. Whoever puts takes one lock for
 * as long as a copy of some hundred bytes takes, and wakes the writer only when that sleeps.
 */
#ifndef EBPFMON_QUEUE_H
#define EBPFMON_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "model/put.h"

#define EBPFMON_QUEUE_SIZE (16u << 20)

/* 0, or -1 without memory. Again: empties it. */
int ebpfMonQueueInit(void);

/* Any thread. What does not fit is counted and dropped. */
void ebpfMonQueuePut(const ebpfMonPut *put);

/* Wakes the writer. */
void ebpfMonQueueWake(void);

/* The writer: moves whole puts, packed, behind their length (size_t), into buf; bytes used. */
size_t ebpfMonQueueTake(uint8_t *buf, size_t size);

/* The writer: sleeps. deep: until something is put, else only for the time. */
void ebpfMonQueueWait(double seconds, int deep);

typedef struct {
    uint64_t taken, dropped; /* puts accepted, puts that did not fit */
    size_t   used;           /* bytes now */
    size_t   peak;           /* the most since the last look */
} ebpfMonQueueState;

void ebpfMonQueueLook(ebpfMonQueueState *state);

#endif
