/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In which record of its scan list a thread is, and since when, if the chains of the pass are not timed. Then the
 * thread table only has the begin of the pass, and a pass of many records may be long without any of them. So the
 * record is looked for each time. It has a place in the list, and the list is gone through once in a pass: if two
 * looks find the same record in the same pass, the thread has been in it all the time between. Publishing thread only.
 */
#ifndef EBPFMON_PASSRECORDS_H
#define EBPFMON_PASSRECORDS_H

#include "ebpfMonTable.h"
#include "health/hangs.h"
#include "watch/target.h"

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

#endif
