/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of a file that take and release the lock sets of records, sorted by who calls: what only reads a record need
 * not be watched, and a scan list goes from record to record in one function.
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
    ebpfMonCallerScanList  /* dbScan.c, scanList: through which the lists of periodic, event and I/O Intr scans run */
} ebpfMonCaller;

typedef struct {
    uint64_t offset; /* of the call in the file, as a uprobe wants it */
    uint64_t behind; /* Lock, LockMany: of a place that is reached straight from its return; 0: there is none */
    uint8_t  called; /* ebpfMonCalled */
    uint8_t  caller; /* ebpfMonCaller */
} ebpfMonCall;

typedef struct {
    int         complete; /* it has no other way to call them */
    int         knowsBehind; /* so is dbScanLockMany, and all calls that take a lock, of ebpfMonCallerOther, have a place behind */
    int         endsOtherwise; /* scanList has other ways out than ebpfMonCalledListEnd, or none that is known */
    ebpfMonSite scanList; /* its entry; cls ebpfMonSiteNone: not found, or it does not call each of them once */
    unsigned    count;
    ebpfMonCall call[];
} ebpfMonCalls;

/* free() it. NULL: nothing is known. */
ebpfMonCalls *ebpfMonCallsRead(ebpfMonElfFile *file);

#endif
