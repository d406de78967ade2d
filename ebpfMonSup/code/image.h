/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program image of a process: which files it has mapped as code, and whether the process is an EPICS IOC. It is an
 * IOC if one of these files has dbProcess and pdbbase. Then the image has the probe sites in that file, and the
 * addresses of the variables that we read. A stripped program with static libraries is an IOC if it contains texts that
 * only IOCs have; its symbols may be in other files (symbolFile.h), which may be added later.
 *
 * A binary is identified by device, inode and build-id. It is opened through /proc/PID/map_files (so containers and
 * replaced files work), read once, and shared by all processes that map it. Symbols come from .dynsym and
 * .symtab. A cache has no lock: one thread at a time. The follower owns the cache of the monitor.
 */
#ifndef EBPFMON_IMAGE_H
#define EBPFMON_IMAGE_H

#include <stddef.h>
#include <sys/types.h>
#include "code/binary.h"
#include "code/mapping.h"

/* --- mapped files ---
 *
 * The files that processes have mapped, and what of EPICS each of them contains. One thread at a time.
 *
 * An inode number is used again soon after a file was deleted. So a file is the same one only if its time and size are
 * also the same. Files of EPICS are checked at every look, because a probe that was set by another file's symbols would
 * break the process. The hundreds of other files are checked when their path changes, or after 10 s.
 *
 * There is room for EBPFMON_KNOWN_MAX files of EPICS, replaced ones included. When half of it is used, the caller lets
 * the cache forget files that no IOC uses any more.
 */

#define EBPFMON_KNOWN_MAX 2048u

typedef struct ebpfMonImageCache ebpfMonImageCache;

ebpfMonImageCache *ebpfMonImageCacheNew(void);
void ebpfMonImageCacheFree(ebpfMonImageCache *cache);

/* Binaries known, for reports: calls "each" for every one that isIoc. */
void ebpfMonImageEach(ebpfMonImageCache *cache, void (*each)(void *arg, const ebpfMonBinary *b), void *arg);

/* What the mapped file holds, *known is NULL when nothing of interest; a new or changed file is read.
 * 0, or -1 when it cannot be had (errno). */
int ebpfMonImageCacheFind(ebpfMonImageCache *cache, pid_t pid, const ebpfMonMapping *map,
    const ebpfMonKnown **known);

/* Nonzero: files that nobody uses should be forgotten. */
int ebpfMonImageCacheIsCrowded(const ebpfMonImageCache *cache);

/* This binary of the cache is used, so the next call of Forget leaves it. NULL does no harm. */
void ebpfMonImageCacheKeep(const ebpfMonBinary *binary);

/* Forgets all files of EPICS but those for which Keep was called since the last time. Nobody may have a pointer to the
 * others any more. */
void ebpfMonImageCacheForget(ebpfMonImageCache *cache);

/* Nonzero: files that are used take most of the room, and there was none for another one. As Forget found it. */
int ebpfMonImageCacheIsFull(const ebpfMonImageCache *cache);

/* A path that opens the mapped file as long as the process lives. 0, or -1 (errno). */
int ebpfMonImageCacheFindPath(pid_t pid, const ebpfMonMapping *map, char *path, size_t size);

/* --- processes --- */

typedef struct ebpfMonImage {
    const ebpfMonBinary *core;  /* the binary with dbProcess, or the nameless program; owned by the cache */
    const ebpfMonBinary *com;   /* the binary with epicsRingPointerPop, which may be "core"; NULL: none */
    char     comPath[128];      /* opens "com", as openPath opens "core" */
    const ebpfMonBinary *server; /* the binary with rsrvCheckPut, if that is not core: EPICS 3.14; NULL: none */
    char     serverPath[128];
    const ebpfMonBinary *pvxs;  /* the binary with pvxs' ConnBase::bevReadS; NULL: none */
    char     pvxsPath[128];
    char     openPath[128];     /* opens exactly the file of "core": /proc/PID/map_files/START-END; without the
                                 * privilege for it /proc/PID/root/... or /proc/PID/exe; empty: none */
    /* Addresses of variables in the process, 0: not there. If the program has a copy (copy relocation), that of the
     * copy. */
    uint64_t pdbbase;
    uint64_t interruptAccept;
    uint64_t asActive;
    uint64_t releaseVersion;  /* text "EPICS R7.0.8.1" (or "EPICS 7..."), or see releaseIsPointer */
    int      releaseIsPointer;
    uint64_t clientQ;             /* rsrv/server.h: the clients of its CA server */
    uint64_t breakpoints;         /* dbBkpt.c, lset_stack_count: a long, lock sets with breakpoints */
    uint64_t program;             /* ebpfMonProcProgram, before the rest was read */
} ebpfMonImage;

#define EBPFMON_CALLERS_MAX 64

/* The files of a process whose code takes and releases lock sets. */
typedef struct {
    int      complete;    /* the process has no other way to take or release a lock set */
    int      scansNow;    /* one of its files has ebpfMonBinary.scansNow */
    unsigned count;
    struct {
        const ebpfMonBinary *binary; /* owned by the cache */
        char path[128];              /* opens it */
    } file[EBPFMON_CALLERS_MAX];
} ebpfMonImageCallers;

/* Reads the image of a process. 0: the process is an IOC (it has mapped dbProcess and pdbbase, or its program is
 * nameless), and *image is filled; 1: it is not an IOC, or not yet; -1: it cannot be read (errno: ESRCH gone,
 * EACCES/EPERM not allowed, ENOMEM, EMFILE..., ENOSPC when the cache holds as many EPICS files as it may). The binaries
 * in *image belong to the cache. */
int ebpfMonImageRead(ebpfMonImageCache *cache, pid_t pid, ebpfMonImage *image);

/* Finds the files of an IOC that take and release lock sets. Call it after iocInit, when the IOC has loaded its
 * modules. 0; or -1 with errno: not now, because this host or we lack something (time, memory, files), or the process
 * has ended. Then "complete" is 0. */
int ebpfMonImageReadCallers(ebpfMonImageCache *cache, pid_t pid, ebpfMonImageCallers *callers);

/* Nonzero: both have the same files, or both are not complete. */
int ebpfMonImageCallersAreSame(const ebpfMonImageCallers *a, const ebpfMonImageCallers *b);

/* Nonzero: after this errno of ebpfMonImageRead the process is to be set aside for a while, because it does not answer,
 * or needs more memory and time than an IOC can need (ETIMEDOUT, EAGAIN, EFBIG, ENOTSUP). Refusal: the reason as
 * text. */
int ebpfMonImageIsRefused(int err);
const char *ebpfMonImageRefusal(int err);

#endif
