/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel part: its programs are loaded, and attached to what belongs to the host; its tables are mapped.
 *
 * One per process, not a context: a second copy would trap each program start and each connection of the host twice,
 * and take the memory of the tables twice, for the same events. ebpfMonKernelLoad comes before all threads that use it,
 * and ebpfMonKernelUnload after they have ended; in between any thread may call the rest, and each IOC's slots are
 * written by the follower alone.
 */
#ifndef EBPFMON_KERNELLOAD_H
#define EBPFMON_KERNELLOAD_H

#include <stddef.h>
#include <stdint.h>
#include "probe/slotTables.h"

/* The programs that are attached to functions of an IOC. */
typedef enum {
    ebpfMonProgPut, ebpfMonProgPutReturn, ebpfMonProgPutField, ebpfMonProgNotify, ebpfMonProgCheckPut,
    ebpfMonProgCamessage, ebpfMonProgCaLink,
    ebpfMonProgLock, ebpfMonProgPassBegin, /* a chain begins; the first chain of a scan list does */
    ebpfMonProgUnlock, ebpfMonProgPassCount, ebpfMonProgPassNext, /* a chain ends; one of a scan list does; … and the next begins */
    ebpfMonProgListEnd, ebpfMonProgListBegin, /* a scan list is at its end; it begins, which sweeps what the last pass did */
    ebpfMonProgLocked, ebpfMonProgAsk, ebpfMonProgAskMany, /* a lock was taken; one is asked for, several are */
    ebpfMonProgScanPut, /* a record may go to another scan list */
    ebpfMonProgUnlockMany, ebpfMonProgCompleted, ebpfMonProgProcess, ebpfMonProgCallback, ebpfMonProgDelayed, ebpfMonProgOnce, ebpfMonProgPop, ebpfMonProgPopReturn,
    ebpfMonProgCount
} ebpfMonProg;

/* What this kernel can do. What it cannot is said once, and the monitor does without. Set by ebpfMonKernelLoad. */
typedef struct {
    int uprobeMulti;  /* one link for a process, detached at once; else perf events, 100 ms each */
    int loop;         /* bpf_loop, and atomic operations that return something; else the object for old kernels is loaded */
    int recvLength;   /* tracepoint sock_recv_length, or the end of tcp_recvmsg: which connection a thread of a server
                         reads */
    int returnUnderSeccomp; /* a return probe does no harm to a process under a seccomp filter (seccompTrial.h) */
    int connectState; /* tracepoint inet_sock_set_state: which process opened a connection */
} ebpfMonFeatures;

extern ebpfMonFeatures ebpfMonFeature;

const char *ebpfMonKernelRelease(void); /* as uname has it; empty: not loaded */

/* Loads, maps, and attaches what belongs to the host (exec, exit, connections). 0, or -1 with what is wrong and what to
 * do in "why"; then nothing is left of it, and it may be called again. */
int ebpfMonKernelLoad(const ebpfMonLoadSizes *sizes, char *why, size_t size);

/* Everything goes; nothing was pinned. */
void ebpfMonKernelUnload(void);

const ebpfMonTables *ebpfMonKernelTables(void); /* NULL: not loaded */

struct bpf_program *ebpfMonKernelGetProgram(ebpfMonProg prog); /* NULL: not loaded */
int ebpfMonKernelGetProgramFd(ebpfMonProg prog);               /* -1: not loaded */

/* Whether the kernel part sees when threads sleep and wait for a CPU (level trace). Follower. */
void ebpfMonKernelWatchScheduler(int on);

#endif
