/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel part. Its programs are loaded, some of them are attached to the kernel itself, and its tables are mapped.
 *
 * One per process, not a context: a second copy would trap each program start and each connection of the host a second
 * time, and need the memory of the tables a second time, for the same events. Call ebpfMonKernelLoad before the threads
 * that use it start, and ebpfMonKernelUnload after they have ended. In between any thread may call the other functions.
 * Only the follower writes the slots of an IOC.
 */
#ifndef EBPFMON_KERNELLOAD_H
#define EBPFMON_KERNELLOAD_H

#include <stddef.h>
#include <stdint.h>
#include "probe/mappedTable.h"

/* The programs that are attached to functions of an IOC. The order matters: see ebpfMonAttachSet (attach.c). */
typedef enum {
    ebpfMonProgPut, ebpfMonProgPutReturn, ebpfMonProgPutField, ebpfMonProgNotify, ebpfMonProgCheckPut,
    ebpfMonProgCamessage, ebpfMonProgCaLink, ebpfMonProgServe, ebpfMonProgClaim,
    ebpfMonProgLock, ebpfMonProgPassBegin, /* a chain begins; a scan list begins, and its first chain */
    ebpfMonProgUnlock, ebpfMonProgPassCount, ebpfMonProgPassNext, /* a chain ends; a chain of a scan list ends; the
                                                                   * same, and the next chain begins */
    ebpfMonProgListEnd, ebpfMonProgListBegin, /* the thread is at the end of a scan list; at its beginning, where the
                                               * end of the pass before may not have been seen */
    ebpfMonProgLocked, ebpfMonProgAsk, ebpfMonProgAskMany, /* a lock set was taken; a thread asks for one; it asks
                                                            * for several */
    ebpfMonProgProcessCall, /* code outside of Base calls dbProcess */
    ebpfMonProgUnlockMany, ebpfMonProgCompleted, ebpfMonProgProcess, ebpfMonProgCallback, ebpfMonProgDelayed,
    ebpfMonProgOnce, ebpfMonProgPop, ebpfMonProgPopReturn,
    ebpfMonProgCount
} ebpfMonProg;

/* What this kernel can do; nonzero: it can. ebpfMonKernelLoad sets it and logs what is missing. The monitor works
 * without it. */
typedef struct {
    int uprobeMulti;  /* one link has all sites of a program in one file, and is detached at once; else each site is
                       * a perf event, which takes 100 ms */
    int loop;         /* bpf_loop() and atomic operations with a result (kernel 5.17); else the object file for old
                       * kernels is loaded */
    int recvLength;   /* tracepoint sock_recv_length, or the end of tcp_recvmsg(): tell from which connection a
                       * thread of a server reads */
    int returnUnderSeccomp; /* a return probe does no harm to a process with a seccomp filter (childTrial.h) */
    int connectState; /* tracepoint inet_sock_set_state: tells which process opened a connection */
} ebpfMonFeatures;

extern ebpfMonFeatures ebpfMonFeature;

const char *ebpfMonKernelRelease(void); /* the release, from uname(); empty: not loaded */

/* Writes why the kernel refused the programs of a query, or those for devices, after a load by this thread. "err":
 * negative errno. */
void ebpfMonKernelExplainRefusal(int err, char *why, size_t size);

/* Loads the programs, maps the tables, and attaches the programs that watch the whole host (start and end of programs,
 * connections). 0; or -1, and "why" gets what is wrong and what to do. Then nothing stays loaded, and the caller may
 * try again. */
int ebpfMonKernelLoad(const ebpfMonLoadSizes *asked, char *why, size_t size);

/* Unloads the programs and unmaps the tables. Nothing of it stays in the kernel. */
void ebpfMonKernelUnload(void);

const ebpfMonTables *ebpfMonKernelTables(void); /* NULL: not loaded */

/* The program stays the kernel part's. NULL: not loaded. */
struct bpf_program *ebpfMonKernelGetProgram(ebpfMonProg prog);

/* Begins ("on") or ends to watch when threads sleep and wait for a CPU (level trace). Follower only. */
void ebpfMonKernelWatchScheduler(int on);

#endif
