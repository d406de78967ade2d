/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of locks in keys of a query. The mutexes of an IOC are read from its memory when a lock is not known; for
 * large IOCs this takes some 0.1 s, so they are not read again at once. The query thread only.
 */
#ifndef EBPFMON_QUERYLOCKS_H
#define EBPFMON_QUERYLOCKS_H

#include "watch/target.h"

typedef struct ebpfMonQueryLocks ebpfMonQueryLocks;

ebpfMonQueryLocks *ebpfMonQueryLocksNew(ebpfMonTargets *targets); /* NULL without memory */
void ebpfMonQueryLocksFree(ebpfMonQueryLocks *locks); /* NULL does no harm */

typedef struct {
    uint64_t record;      /* it is the lock of a lock set, of which this is the first record; else 0 */
    char     creator[64]; /* the file and line that created it: "drvAsyn.c:123" */
} ebpfMonQueryLock;

typedef enum {
    ebpfMonQueryLockFound,
    ebpfMonQueryLockUnknown, /* it is no mutex of EPICS Base */
    ebpfMonQueryLockLater    /* the mutexes were not read since "seen": ask again at the next look */
} ebpfMonQueryLockAnswer;

/* Finds a lock by the address of its futex, or by its epicsMutexId. "seen": when it was first seen (monotonic s). Takes
 * the targets lock; reads memory of the IOC. */
ebpfMonQueryLockAnswer ebpfMonQueryLocksFind(ebpfMonQueryLocks *locks, uint32_t iocId, uint64_t address, double seen,
                                             ebpfMonQueryLock *found);

#endif
