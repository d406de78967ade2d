/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls in a file that take and release lock sets of records, sorted by the function that calls. Functions that
 * only read records need not be watched. scanList goes from record to record in one function, so it is watched in
 * another way.
 */
#ifndef EBPFMON_IMAGECALLS_H
#define EBPFMON_IMAGECALLS_H

#include <stdint.h>
#include "code/elfFile.h"
#include "code/site.h"

typedef enum {
    ebpfMonCalledLock,   /* dbScanLock */
    ebpfMonCalledUnlock, /* dbScanUnlock */
    ebpfMonCalledLockMany, /* dbScanLockMany */
    ebpfMonCalledListEnd   /* epicsMutexUnlock, as the last thing that scanList does */
} ebpfMonCalled;

typedef enum {
    ebpfMonCallerOther,
    ebpfMonCallerReader,   /* it never processes a record: dbGetField and others (dbAccess.c, db_access.c, dbEvent.c) */
    ebpfMonCallerPutField, /* dbPutField (dbAccess.c) */
    ebpfMonCallerScanList  /* dbScan.c, scanList: through which the lists of periodic, event and I/O Intr scans run */
} ebpfMonCaller;

typedef struct {
    uint64_t offset; /* of the call in the file, as a uprobe needs it */
    uint64_t behind; /* Lock, LockMany: of the place behind the call, which is reached straight from its return; 0:
                      * none */
    uint8_t  called; /* ebpfMonCalled */
    uint8_t  caller; /* ebpfMonCaller */
} ebpfMonCall;

typedef struct {
    int         complete; /* the file has no other way to call dbScanLock and dbScanUnlock */
    int         knowsBehind; /* the same for dbScanLockMany, and each call by a function that can process records,
                              * and that takes a lock, has "behind" */
    int         endsOtherwise; /* scanList can also end in another way than ebpfMonCalledListEnd, or its end is not
                                * known */
    int         putFieldLocks; /* dbPutField calls dbScanLock at one place */
    ebpfMonSite scanList; /* its entry; cls ebpfMonSiteNone: not found, or it does not call each of them once */
    unsigned    count;
    ebpfMonCall call[];
} ebpfMonCalls;

/* free() it. NULL: nothing is known. */
ebpfMonCalls *ebpfMonCallsRead(ebpfMonElfFile *file);

#endif
