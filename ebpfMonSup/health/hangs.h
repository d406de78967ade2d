/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares the hangs of this second with those of the second before: which threads began to hang, and which hang no
 * more. Publishing thread only. */
#ifndef EBPFMON_HANGS_H
#define EBPFMON_HANGS_H

#include <epicsTime.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "code/stack.h"
#include "ebpfMonTable.h"
#include "health/lives.h"
#include "model/published.h"
#include "watch/target.h"

/* --- how threads are read ---
 *
 * The functions by which the search for hangs reads threads. The search calls them through a table, so a test can give
 * its own functions and needs neither an IOC nor the kernel part.
 */

/* The publishing thread calls these functions, and holds no lock. */
typedef struct {
    /* As ebpfMonProcThread (host/procStat.h). */
    int (*readThread)(pid_t pid, pid_t tid, char name[16], char *what, size_t size);
    /* As ebpfMonProcKernelStack. */
    void (*readKernelStack)(pid_t pid, pid_t tid, char *text, size_t size);
    /* Sets the frames of a thread, innermost first. Returns their number; 0: the stack could not be read. */
    unsigned (*readStack)(pid_t pid, pid_t tid, ebpfMonFrame frame[EBPFMON_STACK_MAX]);
    /* The lock set of a record, whose LSET is at this address. 0: it could not be read. */
    uint64_t (*readLockSet)(pid_t pid, uint64_t lset);
    /* As ebpfMonKernelGetReleased (probe/kernelTables.h). */
    uint64_t (*getReleased)(uint32_t tgid, uint64_t lockSet);
} ebpfMonHangSources;

/* The functions of the monitor: they read /proc, the memory of the IOC, and the kernel part. */
extern const ebpfMonHangSources ebpfMonHangSourcesHost;

/* --- hangs --- */

#define EBPFMON_HANGS_MAX 64

/* A thread that holds a lock set, or is in one callback, for too long. */
typedef struct {
    uint32_t id, tid;  /* the number of its IOC, and its thread id */
    uint64_t begin;    /* monotonic ns; tid and begin identify the hang */
    double   since;    /* how long it hangs (s) */
    char     now[EBPFMON_HEALTH_NAME]; /* the record that the thread works on now; it may be another one than the
                                        * root of its chain. Empty: not known */
    char     who[240]; /* "IOC x (pid 1): thread scan-1 (tid 2) in record R, at S"; "… in a callback" */
    char     what[480];/* "sleeping in futex (futex_wait_queue), at a < b" */
} ebpfMonHang;

typedef struct ebpfMonHangs ebpfMonHangs;

ebpfMonHangs *ebpfMonHangsNew(void); /* NULL without memory */
void ebpfMonHangsFree(ebpfMonHangs *hangs);

/* "now": the hangs of this second; "at": the time for events. Adds events to "health", and sets health->hangs. Call
 * this after ebpfMonLivesUpdate, because the hangs of an IOC that has ended make no event. */
void ebpfMonHangsUpdate(ebpfMonHangs *hangs, const ebpfMonHang *now, unsigned n, const ebpfMonLives *lives,
                        const epicsTimeStamp *at, ebpfMonHealth *health);

/* --- finding ---
 *
 * Finds the threads that hang: a thread hangs that holds a lock set, or is in one callback, for ebpfMonHangLimit or
 * longer. Publishing thread only.
 */

/* An element of the kernel part's thread table. */
typedef struct {
    uint32_t tid;
    uint64_t doubt; /* ns; held[0].begin may be so much too late (healthCollector.h) */
    struct ebpfMonThread seen;
} ebpfMonSeenThread;

typedef struct ebpfMonHangFinder ebpfMonHangFinder;

/* "targets" and "sources" stay the caller's. NULL without memory. */
ebpfMonHangFinder *ebpfMonHangFinderNew(ebpfMonTargets *targets, const ebpfMonHangSources *sources);
void ebpfMonHangFinderFree(ebpfMonHangFinder *finder);

/* "now": monotonic ns. Returns the number of hangs in "found"; sets health->hangLine to their stacks. The caller
 * holds no lock: this function takes the targets lock to look up names, and reads stacks without it. */
unsigned ebpfMonHangFinderFind(ebpfMonHangFinder *finder, const ebpfMonSeenThread *threads, unsigned count,
                               uint64_t now, ebpfMonHang found[EBPFMON_HANGS_MAX], ebpfMonHealth *health);

/* If a turn began or ended during the pass of a scan thread, its entry still has the root of the last chain that was
 * timed. That chain has ended: removes the root. "turn": the IOC's now (struct ebpfMonTargetConf). */
void ebpfMonHangFinderForgetOldRoot(struct ebpfMonThread *seen, uint32_t turn);

/* The time (s) after which a thread hangs; 0: hangs are not looked for. One per process, because it is a variable of
 * iocsh. */
extern double ebpfMonHangLimit;

#endif
