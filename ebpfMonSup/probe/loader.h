/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel half, loaded: its programs, its tables, its event ring. One per process.
 *
 * The tables indexed by slot are mapped: reading a count is a memory read. All functions may be called
 * from any thread, but each target's slots are written by the target thread alone.
 */
#ifndef EBPFMON_LOADER_H
#define EBPFMON_LOADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonTable.h"

/* The programs that are attached to functions of a target. */
typedef enum {
    ebpfMonProgPut, ebpfMonProgPutReturn, ebpfMonProgPutField, ebpfMonProgNotify, ebpfMonProgCheckPut,
    ebpfMonProgCamessage, ebpfMonProgCaLink, ebpfMonProgLock, ebpfMonProgUnlock, ebpfMonProgUnlockMany, ebpfMonProgCompleted,
    ebpfMonProgProcess, ebpfMonProgCallback, ebpfMonProgDelayed, ebpfMonProgOnce, ebpfMonProgPop, ebpfMonProgPopReturn,
    ebpfMonProgCount
} ebpfMonProg;

typedef struct {
    unsigned maxRecords, maxClosure, maxRoots;
    unsigned ringBytes; /* power of two */
} ebpfMonLoadSizes;

/* What this kernel can do; what it cannot is said once and worked around, or shown as off. */
typedef struct {
    int uprobeMulti;  /* one link for a process, detached at once; else perf events, 100 ms each */
    int loop;         /* bpf_loop: without it nothing that walks a chain, so level puts at most */
    int recvLength;   /* tracepoint sock_recv_length, or the end of tcp_recvmsg: which connection a thread of a server
                         reads */
    int connectState; /* tracepoint inet_sock_set_state: which process opened a connection */
} ebpfMonFeatures;

extern ebpfMonFeatures ebpfMonFeature;

const char *ebpfMonKernelRelease(void); /* as uname has it */

typedef struct {
    volatile struct ebpfMonRecConf  *conf;  /* [maxRecords] */
    volatile struct ebpfMonRecState *state; /* [maxRecords] */
    volatile uint32_t *closure;             /* [maxClosure] */
    ebpfMonLoadSizes size;
    size_t bytes;                           /* of all tables, for the books */
} ebpfMonTables;

/* Loads and attaches what belongs to the host (exec, exit, connections). 0, or -1 with what is wrong and
 * what to do in "why". */
int ebpfMonKernelLoad(const ebpfMonLoadSizes *sizes, char *why, size_t size);
void ebpfMonKernelUnload(void); /* everything goes; nothing was pinned */

const ebpfMonTables *ebpfMonKernelTables(void); /* NULL: not loaded */
int ebpfMonProgFd(ebpfMonProg prog);
struct bpf_program *ebpfMonProgram(ebpfMonProg prog);

/* Whether it is watched when threads sleep and wait for a CPU (level trace). Target thread. */
void ebpfMonKernelWatchScheduler(int on);

/* Tables by key. 0 or -1 (errno). */
int ebpfMonKernelSetTarget(uint32_t tgid, const struct ebpfMonTargetConf *conf);
void ebpfMonKernelRemoveTarget(uint32_t tgid);
/* Records by address: precord[i] has slot first+i. */
int ebpfMonKernelSetRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first);
void ebpfMonKernelRemoveRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count);
int ebpfMonKernelSetArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf);
void ebpfMonKernelRemoveArray(uint32_t tgid, uint64_t pfldDes);
int ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, struct ebpfMonOwner *owner);
int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);
void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count); /* histograms of these slots */
void ebpfMonKernelRemoveThreads(pid_t pid);                    /* what is known of a process' threads */

/* Hits of one target, summed over the CPUs. */
void ebpfMonKernelGetHits(uint32_t tgid, struct ebpfMonHits *hits);
void ebpfMonKernelGetLost(uint64_t lost[EBPFMON_LOST_KERNEL]);

/* Calls "each" for every root that has a chain. */
void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);

/* Calls "each" for every thread of a target that was seen; perhaps twice for one. */
void ebpfMonKernelEachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg);
/* When a lock set was last released, 0: not seen. */
uint64_t ebpfMonKernelGetReleased(uint32_t tgid, uint64_t lockSet);

/* What waited in the queues of a target. 0, or -1: none. */
int ebpfMonKernelGetQueues(uint32_t tgid, struct ebpfMonQueues *queues);

/* The registers of a thread as it entered the kernel last; it is not stopped for it. 0, or -1: gone, or not on this
 * kernel. One thread at a time. */
int ebpfMonKernelGetRegs(uint32_t tid, struct ebpfMonTaskRegs *regs);

/* The ring. Waits at most "ms" for events, hands every one to "event", returns their number or -1. */
typedef void (*ebpfMonEventFn)(void *arg, const struct ebpfMonHead *head, size_t size);
int ebpfMonKernelReadEvents(int ms, ebpfMonEventFn event, void *arg);

#endif
