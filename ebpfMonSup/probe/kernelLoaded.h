/* SPDX-License-Identifier: BSD-3-Clause */
/* What kernelLoad.c made, for the other files of probe/. Private to probe/. */
#ifndef EBPFMON_KERNELLOADED_H
#define EBPFMON_KERNELLOADED_H

#include <sys/utsname.h>

#include "probe/mappedTable.h"
#include "probe/ring.h"
#include "ebpfMonBpf.skel.h"

/* The map "roots". The follower writes this struct; programs write the elements. */
typedef struct {
    ebpfMonBlockTable table;
    const volatile struct ebpfMonRootStat *stat; /* the first one */
    unsigned most;
    size_t   made; /* elements that were made; atomic, because others read them */
    uint64_t refusedAt; /* the kernel gave no memory for more of them (monotonic ns); 0: it did */
} ebpfMonLoadedRoots;

/* One per process: see kernelLoad.h. ebpfMonKernelLoad and ebpfMonKernelUnload write it while no other thread uses it.
 * In between, each member that changes has one thread that writes it. */
struct ebpfMonLoaded {
    struct ebpfMonBpf  *skel;  /* NULL: nothing is loaded. Its links of the scheduler: follower */
    ebpfMonRing         ring;     /* this one and the next: event thread */
    int                 ringFile; /* 0: it is not open */
    int                 isSilent; /* atomic; nonzero: a silence was begun, and its end was not taken. Any thread */
    const volatile uint64_t *lost; /* the table of lost events, mapped; NULL: it is not */
    ebpfMonTables       tables;
    ebpfMonBlockTable   conf, state, closure; /* follower */
    ebpfMonLoadedRoots  roots;
    uint32_t            hitsOf[EBPFMON_TARGETS_MAX]; /* the IOC (tgid) at each place of the table of hits; 0: none.
                                                      * Follower */
    uint32_t            lastProbe; /* number of a probe. Follower */
    int                 grows;    /* nonzero: some hash tables grow (letTablesGrow) */
    int                 isRealTime; /* nonzero: of these, those to which traps add do not */
    struct utsname      kernel;
    uint64_t            skippedReceives, skippedReceiveAt; /* ebpfMonKernelMissedReceive: event thread; monotonic ns */
    int                 nopHarms; /* nonzero: a probe at a nop of 5 bytes does harm (childTrial.h) */
    int                 schedulerRefused; /* nonzero: the kernel refused the tracepoints of the scheduler, and is not
                                           * asked again. Follower */
};
extern struct ebpfMonLoaded ebpfMonLoaded;

int ebpfMonKernelOpenRoots(unsigned most); /* 0, or -1 with errno */
int ebpfMonKernelOpenRing(size_t bytes); /* 0, or -1 with errno; call ebpfMonKernelCloseRing in both cases */
void ebpfMonKernelCloseRing(void);

#endif
