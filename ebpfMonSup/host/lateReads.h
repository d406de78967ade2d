/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of another process that are needed where they must not be made: under a lock for which others wait. The other
 * process decides how long a read takes (foreign.h). So the reads are made without the lock, and the work under the
 * lock is done once more:
 *
 *     ebpfMonLateReadsBegin(reads);
 *     do {
 *         lock; work, which calls ebpfMonLateReadsGet; unlock;
 *     } while (ebpfMonLateReadsMake(reads));
 *
 * The first time ebpfMonLateReadsGet fails and notes what is wanted. ebpfMonLateReadsMake reads it. The next time
 * ebpfMonLateReadsGet returns the result, until nothing more is wanted. So the work must do no harm if it is done
 * several times; what may be done only once is done when ebpfMonLateReadsAreWanted is 0.
 *
 * One thread at a time.
 */
#ifndef EBPFMON_LATEREADS_H
#define EBPFMON_LATEREADS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ebpfMonLateReads ebpfMonLateReads;

#define EBPFMON_LATE_KEY  32  /* bytes of a key at most */
#define EBPFMON_LATE_SIZE 512 /* bytes of a result at most */
#define EBPFMON_LATE_MAX  512 /* results that are kept at most; more reads than these fail */

ebpfMonLateReads *ebpfMonLateReadsNew(void); /* NULL without memory */
void ebpfMonLateReadsFree(ebpfMonLateReads *reads);

/* Forgets all results. */
void ebpfMonLateReadsBegin(ebpfMonLateReads *reads);

/* Reads what "key" names into the "size" bytes of buf. 0, or another number: it failed. No lock is held. */
typedef int (*ebpfMonLateReadFn)(const void *key, void *buf, size_t size);

/* The result of read(key, buf, size), if it was made since Begin; else -1, and it is wanted. All bytes of the key
 * count, so set those between its members to 0, too. "reads" NULL: reads at once. */
int ebpfMonLateReadsGet(ebpfMonLateReads *reads, ebpfMonLateReadFn read, const void *key, size_t keySize, void *buf,
                        size_t size);

/* Such a read of the memory of a process: all "len" bytes, or -1. */
int ebpfMonLateReadsGetBytes(ebpfMonLateReads *reads, pid_t pid, uint64_t addr, void *buf, size_t len);

/* The part of a text that can be read and fits, terminated. 0, or -1: nothing can be read. */
int ebpfMonLateReadsGetText(ebpfMonLateReads *reads, pid_t pid, uint64_t addr, char *buf, size_t size);

/* Nonzero: something is wanted that is not read yet. */
int ebpfMonLateReadsAreWanted(const ebpfMonLateReads *reads);

/* Reads all that is wanted. Nonzero: there was something, so the work has to be done once more. No lock may be held. */
int ebpfMonLateReadsMake(ebpfMonLateReads *reads);

#endif
