/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program image of a process: which files it has mapped as code, and whether they make it an EPICS IOC. It is one
 * when a file has dbProcess and pdbbase; the image then has the probe sites in that file, and the addresses of the
 * variables that we read. A program that was linked with static libraries and stripped is one when it holds texts that only
 * IOCs have; symbols of it may be in other files (symbolFile.h), and come later than it does.
 *
 * A binary is keyed by device, inode and build-id, opened through /proc/PID/map_files (so containers and
 * replaced files work), read once and shared by all processes that map it. Symbols come from .dynsym and
 * .symtab. A cache has no lock: one thread at a time. The follower owns the monitor's.
 */
#ifndef EBPFMON_IMAGE_H
#define EBPFMON_IMAGE_H

#include <sys/types.h>
#include "code/imageCalls.h"

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
    int      isNameless;   /* it is the program of an IOC, but nothing tells where its functions are, or it is foreign */
    const char *foreign;   /* the machine that it is for, if that is not this host's: an emulator runs it; else NULL */
    ebpfMonSite site[ebpfMonFnCount];
    uint32_t oldNames;     /* bit by ebpfMonFn: it was found under the name of an older release */
    const ebpfMonCalls *calls; /* NULL: it does not call what is looked for, or its calls are not known */
    int      usesLocks;    /* it calls dbScanLock or dbScanUnlock in some way */
    int      scansNow;     /* it calls scanIoImmediate: an I/O Intr list may be scanned by two threads at a time */
} ebpfMonBinary;

typedef struct ebpfMonImage {
    const ebpfMonBinary *core;  /* the binary with dbProcess, or the nameless program; owned by the cache */
    const ebpfMonBinary *com;   /* … with epicsRingPointerPop, which may be the same; NULL: none */
    char     comPath[128];      /* opens that, as openPath */
    const ebpfMonBinary *server; /* the binary with rsrvCheckPut, if that is not core: EPICS 3.14; NULL: none */
    char     serverPath[128];
    char     openPath[128];     /* opens that very file: /proc/PID/map_files/START-END; without the
                                 * privilege for it /proc/PID/root/... or /proc/PID/exe; empty: none */
    /* live addresses in the process, 0: not there. The executable's own copy (copy relocation) wins. */
    uint64_t pdbbase;
    uint64_t interruptAccept;
    uint64_t asActive;
    uint64_t epicsReleaseVersion; /* text "EPICS R7.0.8.1" (or "EPICS 7..."), or see releaseIsPointer */
    int      releaseIsPointer;
    uint64_t clientQ;             /* rsrv/server.h: the clients of its CA server */
    uint64_t breakpoints;         /* dbBkpt.c, lset_stack_count: a long, lock sets with breakpoints */
    uint64_t coreBias;            /* added to a vaddr of "core" */
} ebpfMonImage;

#define EBPFMON_CALLERS_MAX 64

/* The files of a process whose code takes and releases lock sets. */
typedef struct {
    int      complete;    /* these are all ways in which it is done */
    int      scansNow;    /* one of its files has ebpfMonBinary.scansNow */
    unsigned count;
    struct {
        const ebpfMonBinary *binary; /* owned by the cache */
        char path[128];              /* opens it */
    } file[EBPFMON_CALLERS_MAX];
} ebpfMonImageCallers;

typedef struct ebpfMonImageCache ebpfMonImageCache;

ebpfMonImageCache *ebpfMonImageCacheNew(void);
void ebpfMonImageCacheFree(ebpfMonImageCache *cache);

/* Reads the image of a process. 0: it is an IOC (has dbProcess and pdbbase mapped, or is nameless) and *image is filled; 1: it is none,
 * or not yet; -1: it cannot be read (errno: ESRCH gone, EACCES/EPERM not allowed, ENOMEM, EMFILE..., ENOSPC when the
 * cache holds as many EPICS files as it may). What *image points to belongs to the cache. */
int ebpfMonImageRead(ebpfMonImageCache *cache, pid_t pid, ebpfMonImage *image);

/* Finds the files of an IOC that take and release lock sets: they come as it loads modules, so after iocInit. "complete" is 0 if
 * it cannot be read, too. */
void ebpfMonImageReadCallers(ebpfMonImageCache *cache, pid_t pid, ebpfMonImageCallers *callers);

/* Nonzero: the same files call, or in both it is not known. */
int ebpfMonImageCallersAreSame(const ebpfMonImageCallers *a, const ebpfMonImageCallers *b);

/* Nonzero: with this errno of ebpfMonImageRead the process is to be left alone for a while, and the text why. It does
 * not answer, or asks for more than an IOC can (ETIMEDOUT, EAGAIN, EFBIG, ENOTSUP). */
int ebpfMonImageIsRefused(int err);
const char *ebpfMonImageRefusal(int err);

/* Binaries known, for reports: calls "each" for every one that isIoc. */
void ebpfMonImageEach(ebpfMonImageCache *cache, void (*each)(void *arg, const ebpfMonBinary *b), void *arg);

#endif
