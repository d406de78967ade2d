/* SPDX-License-Identifier: BSD-3-Clause */
/* Collects, once a second, the resources of each IOC, its delays, the periods of its scan threads, which IOCs ended
 * or came back, and which threads hang. Publishing thread only. */
#ifndef EBPFMON_HEALTHCOLLECTOR_H
#define EBPFMON_HEALTHCOLLECTOR_H

#include <stdint.h>

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "model/published.h"
#include "watch/target.h"

/* --- records of passes ---
 *
 * In which record of its scan list a thread is, and since when, if the chains of the pass are not timed. Then the
 * thread table only has the begin of the pass, and a pass of many records may be long without any of them. So the
 * record is looked for each time. It has a place in the list, and the list is gone through once in a pass: if two
 * looks find the same record in the same pass, the thread has been in it all the time between. Publishing thread
 * only. */

typedef struct ebpfMonPassRecords ebpfMonPassRecords;

/* Reads the words of a thread's stack below "sp", upwards. 0; nonzero: not possible. */
typedef int (*ebpfMonPassRecordsRead)(pid_t pid, uint64_t sp, uint64_t word[EBPFMON_PASS_STACK]);

/* "targets" stay the caller's. "read": NULL for the memory of the IOC. NULL without memory. */
ebpfMonPassRecords *ebpfMonPassRecordsNew(ebpfMonTargets *targets, ebpfMonPassRecordsRead read);
void ebpfMonPassRecordsFree(ebpfMonPassRecords *records); /* NULL does no harm */

/* Call this before the threads of a look, and after them: forgets the threads that were not seen between. */
void ebpfMonPassRecordsBegin(ebpfMonPassRecords *records);
void ebpfMonPassRecordsEnd(ebpfMonPassRecords *records);

/* Looks for the record of this thread, if it has been in such a pass for half a second. If it is found, sets the root
 * of the thread's lock set, and its begin to the first look that found this record, with the doubt that the looks
 * leave. Takes the targets lock. "now": monotonic ns. */
void ebpfMonPassRecordsSee(ebpfMonPassRecords *records, ebpfMonSeenThread *thread, uint64_t now);

/* --- CPU use ---
 *
 * CPU use in percent, from readings of the CPU time of many things (IOCs, servers). Each thing has a number. One
 * thread.
 */

typedef struct ebpfMonCpuMeters ebpfMonCpuMeters;

/* For up to "size" things, at least 1. If there are more, a new thing replaces the one with the oldest last reading.
 * "weight": of the newest reading in the moving average; 1: the average is the newest reading. NULL without memory. */
ebpfMonCpuMeters *ebpfMonCpuMetersNew(unsigned size, double weight);
void ebpfMonCpuMetersFree(ebpfMonCpuMeters *meters);

/* "id": the number of the thing, not 0; "cpu": its CPU time so far (s); "now": monotonic ns. Returns percent of one
 * core, as a moving average of the readings; NaN at the first reading. A CPU time that is less than before tells
 * nothing: the average stays. */
double ebpfMonCpuMetersAdd(ebpfMonCpuMeters *meters, uint32_t id, double cpu, uint64_t now);

/* What the last reading of this thing returned; *at: when that was; NaN and 0: there was none. */
double ebpfMonCpuMetersGet(const ebpfMonCpuMeters *meters, uint32_t id, uint64_t *at);

/* --- delays ---
 *
 * How long callbacks, scanOnce and lock sets took in an IOC during the last 8.6 to 17.2 s (EBPFMON_WINDOW_BITS),
 * from the tables of the kernel part. No state. Any thread; the structs are the caller's.
 */

/* Sets row->callback and row->once (ms). "now": monotonic ns. */
void ebpfMonDelaysSetQueues(const struct ebpfMonQueues *queues, uint64_t now, ebpfMonIocHealth *row);

/* If this thread held a lock set longer than row->hold (ms): sets row->hold, and *root to the address of the root of
 * that chain. */
void ebpfMonDelaysAddHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root);

/* Raises the highest values of all IOCs (health->callbackMax …) to the values of this IOC where these are higher. */
void ebpfMonDelaysAddToHighest(const ebpfMonIocHealth *row, ebpfMonHealth *health);

/* --- the order of rows ---
 *
 * The order of the rows that people read: the worst first.
 */

/*
 * Sorts health->ioc and health->scan. IOCs: by the value that is nearest to its alarm limit (delays, files, CPU load);
 * IOCs that are not watched come last. Scan threads: the late ones first, then by load. Rows must not change places
 * each second. So values are compared by their power of two, and rows with equal ones are sorted by name. No lock; the
 * thread that owns "health".
 */
void ebpfMonRowOrderSort(ebpfMonHealth *health);

/* --- collecting --- */

typedef struct ebpfMonHealthCollector ebpfMonHealthCollector;

/* "targets" stays the caller's. NULL without memory. */
ebpfMonHealthCollector *ebpfMonHealthCollectorNew(ebpfMonTargets *targets);
void ebpfMonHealthCollectorFree(ebpfMonHealthCollector *collector);

/* Reads the IOCs and sets the published values of ebpfMonGroupHealth; the caller notifies this group afterwards.
 * Call this once a second and without a lock: it takes the targets lock and the lock of the published values, each
 * for a short time. */
void ebpfMonHealthCollectorPublish(ebpfMonHealthCollector *collector);

/* The IOCs that are gone are known to be: from the next look on they do not count. Any thread. */
void ebpfMonHealthCollectorAcknowledge(ebpfMonHealthCollector *collector);

/* Nonzero: at the last look some thread was in a chain or a callback, or hung: it may hang at the next one. */
int ebpfMonHealthCollectorIsBusy(const ebpfMonHealthCollector *collector);

#endif
