/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue of records of any length to one thread: a ring of bytes with a fixed size and one reader. A thread that adds
 * a record holds a lock while it copies some hundred bytes, and wakes the reader only if that sleeps.
 */
#ifndef EBPFMON_RECORDQUEUE_H
#define EBPFMON_RECORDQUEUE_H

#include <stddef.h>
#include <stdint.h>
#include "model/put.h"

#define EBPFMON_RECORD_QUEUE_SHARES 1023

typedef struct ebpfMonRecordQueue ebpfMonRecordQueue;

/* "size": bytes. NULL: no memory. */
ebpfMonRecordQueue *ebpfMonRecordQueueNew(size_t size);

/* No thread may use it any more. NULL does no harm. */
void ebpfMonRecordQueueFree(ebpfMonRecordQueue *queue);

/* Drops all records, and does not count them. There must be no reader at that time. */
void ebpfMonRecordQueueClear(ebpfMonRecordQueue *queue);

/* Adds a record. A record that does not fit is dropped and counted. "owner": 0, or a number up to
 * EBPFMON_RECORD_QUEUE_SHARES that tells to whom the record belongs. No owner may have more in the queue than four
 * times the free room, so one who adds too much leaves room for the others (as struct ebpfMonShare,
 * bpf/contract/ebpfMonTable.h). Any thread. */
void ebpfMonRecordQueueAdd(ebpfMonRecordQueue *queue, unsigned owner, const void *record, size_t len);

/* Bytes that are free. Any thread. */
size_t ebpfMonRecordQueueGetRoom(ebpfMonRecordQueue *queue);

/* Wakes the reader; one call is remembered if it does not sleep. Any thread. */
void ebpfMonRecordQueueWake(ebpfMonRecordQueue *queue);

/* Returns the number for "owner" from the name of an IOC (NULL: none); never 0. Names with the same hash share one. */
unsigned ebpfMonRecordQueueShareOf(const char *name);

/* For the reader: moves whole records to "buf", each of them after its length (size_t). Returns the bytes used. */
size_t ebpfMonRecordQueueRead(ebpfMonRecordQueue *queue, uint8_t *buf, size_t size);

/* For the reader: sleeps for "seconds", or until it is woken. "untilAdded" nonzero: it sleeps only while the queue
 * is empty, and a new record wakes it. Zero: new records do not wake it, which costs the writers less. */
void ebpfMonRecordQueueWait(ebpfMonRecordQueue *queue, double seconds, int untilAdded);

typedef struct {
    uint64_t accepted, dropped; /* records that fitted, and records that did not */
    size_t   used;              /* bytes in use */
} ebpfMonRecordQueueState;

/* Copies the state. Any thread. */
void ebpfMonRecordQueueGetState(ebpfMonRecordQueue *queue, ebpfMonRecordQueueState *state);

/* Returns the maximum of the bytes in use since the last call. Only for the thread that publishes it, because each call
 * begins anew. */
size_t ebpfMonRecordQueueTakePeak(ebpfMonRecordQueue *queue);

/* --- puts in it ---
 *
 * A put in a queue: without the unused ends of its texts, some 200 bytes instead of 3 KB. Its members "who" and
 * "origin" are left out, because they can be made from the others. Any thread.
 */

#define EBPFMON_PUT_PACK_MAX (sizeof(ebpfMonPut) + 128)

/* Writes to "buf", which has EBPFMON_PUT_PACK_MAX bytes. Returns how many are used. */
size_t ebpfMonPutPack(const ebpfMonPut *put, uint8_t *buf);

/* Reads the "len" bytes that ebpfMonPutPack wrote. */
void ebpfMonPutUnpack(const uint8_t *buf, size_t len, ebpfMonPut *put);

#endif
