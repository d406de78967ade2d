/* SPDX-License-Identifier: BSD-3-Clause */
/* What of EPICS a program file contains: its functions and variables, and where a probe is to be put. */
#ifndef EBPFMON_BINARY_H
#define EBPFMON_BINARY_H

#include <stdint.h>
#include <sys/types.h>
#include "code/elfFile.h"
#include "code/elfSymbols.h"
#include "code/machine.h"

/* --- calls that take and release lock sets ---
 *
 * The calls in a file that take and release lock sets of records, sorted by the function that calls. Functions that
 * only read records need not be watched. scanList goes from record to record in one function, so it is watched in
 * another way.
 */

typedef enum {
    ebpfMonCalledLock,   /* dbScanLock */
    ebpfMonCalledUnlock, /* dbScanUnlock */
    ebpfMonCalledLockMany, /* dbScanLockMany */
    ebpfMonCalledProcess,  /* dbProcess, called in another file than the one of Base that has it */
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

/* The functions that are probed: index into ebpfMonBinary.site. */
typedef enum {
    ebpfMonFnPut,          /* dbPut: args 1-4, return */
    ebpfMonFnPutField,     /* dbPutField: args 1-4 */
    ebpfMonFnProcessNotify,/* dbProcessNotify, in EPICS 3.14 dbPutNotify: arg 1 */
    ebpfMonFnCheckPut,     /* rsrvCheckPut: arg 1 */
    ebpfMonFnCamessage,    /* camessage: arg 1 */
    ebpfMonFnScanLock,     /* dbScanLock: arg 1 */
    ebpfMonFnScanUnlock,   /* dbScanUnlock: arg 1 */
    ebpfMonFnScanUnlockMany,/* dbScanUnlockMany: arg 1 */
    ebpfMonFnCaPutLink,    /* dbCaPutLinkCallback: arg 1 */
    ebpfMonFnFwdLink,      /* recGblFwdLink: arg 1 */
    ebpfMonFnProcess,      /* dbProcess: arg 1 */
    ebpfMonFnCallback,     /* callbackRequest: arg 1 */
    ebpfMonFnCallbackDelayed, /* callbackRequestDelayed: arg 1 */
    ebpfMonFnScanOnce,     /* scanOnceCallback, before EPICS 3.16 scanOnce: arg 1 */
    ebpfMonFnRingPop,      /* epicsRingPointerPop, in libCom: arg 1 */
    ebpfMonFnAddClient,    /* asAddClient, in libCom: args 1-4 */
    ebpfMonFnServe,        /* pvxs::impl::ConnBase::bevReadS, in libpvxs: arg 1 */
    ebpfMonFnCount
} ebpfMonFn;

extern const char *const ebpfMonFnNames[ebpfMonFnCount]; /* "dbPut", … */

typedef struct ebpfMonBinary {
    dev_t    dev;
    ino_t    ino;
    char     buildId[41];  /* hex, empty: none */
    char     path[256];    /* as the process calls it; for reports only */
    int      isIoc;        /* has dbProcess and pdbbase */
    int      isRecognised; /* its functions were found by what they do, without symbols */
    int      isStripped;   /* it is an IOC without symbols of its own: recognised, or with another file's symbols */
    int      isContradicted; /* a file with symbols and its build-id was refused, because its functions begin
                              * elsewhere */
    int      isNameless;   /* it is the program of an IOC, but nothing tells where its functions are, or it is
                            * foreign */
    const char *foreign;   /* NULL: built for this host; else the machine that it was built for, and which an emulator
                            * runs here */
    ebpfMonSite site[ebpfMonFnCount];
    int      isCheckCopied; /* its compiler put copies of rsrvCheckPut into the callers, so "site" has none */
    uint32_t oldNames;     /* bit by ebpfMonFn: it was found under the name of an older release */
    const ebpfMonCalls *calls; /* its calls of dbScanLock and others; NULL: it has none, or they are not known */
    int      usesLocks;    /* it calls dbScanLock or dbScanUnlock in some way */
    int      scansNow;     /* it calls scanIoImmediate: an I/O Intr list may be scanned by two threads at a time */
} ebpfMonBinary;

/* The variables that are read in a process: index into ebpfMonKnown.var. */
enum { ebpfMonVarBase, ebpfMonVarInterrupt, ebpfMonVarAs, ebpfMonVarRelease, ebpfMonVarClients,
       ebpfMonVarBreakpoints, ebpfMonVarCount };

/* A file that holds something of EPICS. */
typedef struct ebpfMonKnown {
    struct ebpfMonKnown *next;
    int      isKept;       /* somebody uses it: ebpfMonImageCacheKeep */
    ebpfMonBinary binary;
    int      isProgram;    /* an executable, whose variables go before a library's */
    unsigned nSegments;
    ebpfMonElfSegment segment[EBPFMON_ELF_SEGMENTS];
    ebpfMonElfSymbol var[ebpfMonVarCount];
} ebpfMonKnown;

#endif
