/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the IOC share: ioc.c, iocLocks.c. */
#ifndef EXPLORE_IOCOWN_H
#define EXPLORE_IOCOWN_H

#include <stdint.h>

#include "ioc.h"

#define STACK_ENTRY 48 /* words: where the stack pointer of a thread's outermost function is */
#define STACK_FRAME 4

/* Functions whose accesses are no points. */
#define NO_POINTS __attribute__((no_sanitize("thread"), noinline))

/* The present thread calls a function, and returns from it. */
void iocEnter(void);
void iocLeave(void);
unsigned iocDepth(void);   /* so many calls it is in */
void iocForgetCalls(void); /* of all threads, and their traps */

/* The present thread comes to a place at which this program may be attached. */
void iocTrap(iocProgram program, iocCaller caller, const void *first, uint64_t second, const void *third,
             uint64_t fourth);
void iocTrapAt(iocProgram program, iocCaller caller, const void *first);

/* A mutex. That a thread requests it is a point, if others do, too. */
void iocTakeMutex(uint64_t *owner);
void iocGiveMutex(uint64_t *owner);
void iocGiveSet(iocLockSet *set);
void iocTakeSet(iocLockRecord *lr);

/* dbLock.c */
void dbScanLock(iocRecord *r, iocCaller caller);
void dbScanUnlock(iocRecord *r, iocCaller caller);
void dbScanLockMany(iocLocker *locker, iocRecord **r, unsigned count);
void dbScanUnlockMany(iocLocker *locker);

#endif
