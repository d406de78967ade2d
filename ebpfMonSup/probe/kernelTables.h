/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of the loaded kernel part (kernelLoad.h) that are found by key. Each call is one or more system calls, so
 * none is made while a lock of the event path is held; but the rankings go round the roots under the targets lock, once
 * a second and for some milliseconds at most. Any thread, unless a function says otherwise.
 */
#ifndef EBPFMON_KERNELTABLES_H
#define EBPFMON_KERNELTABLES_H

#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonTable.h"

/* --- Written by the follower. 0, or -1 with errno. --- */

int  ebpfMonKernelSetTarget(uint32_t tgid, const struct ebpfMonTargetConf *conf);
void ebpfMonKernelRemoveTarget(uint32_t tgid);

/* Records by address: precord[i] gets slot first + i. */
int  ebpfMonKernelSetRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first);
void ebpfMonKernelRemoveRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count);

/* Where an array field has its elements. */
int  ebpfMonKernelSetArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf);
void ebpfMonKernelRemoveArray(uint32_t tgid, uint64_t pfldDes);

/* Which records a scan list processes; the list is known by its mutex. */
int  ebpfMonKernelSetList(uint32_t tgid, uint64_t mutex, const struct ebpfMonList *list);
void ebpfMonKernelRemoveList(uint32_t tgid, uint64_t mutex);

/* Nonzero "isPlain": processes that run this program are no IOCs, and their starts are no events, unless the process is a
 * found one, or some seconds old. */
int  ebpfMonKernelSetPlain(const struct ebpfMonProgram *program, int isPlain);

/* Nonzero "isFound": this process is an IOC, and each program that it starts is an event. */
void ebpfMonKernelSetFound(uint32_t tgid, int isFound);

/* Records that go to other scan lists: from now on they are noted; those that were. 0, or -1. */
int  ebpfMonKernelBeginMoved(uint32_t tgid);
int  ebpfMonKernelGetMoved(uint32_t tgid, struct ebpfMonMoved *moved);

void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count); /* histograms of "count" slots from "first" on */
void ebpfMonKernelRemoveThreads(pid_t pid);                    /* what is known of the threads of a process */

/* --- Any thread --- */

/* Who opened a connection. 0, or -1: not known, or no room. */
int ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, struct ebpfMonOwner *owner);
int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);

/* Traps of one IOC since it is watched, summed over the CPUs. */
void ebpfMonKernelGetHits(uint32_t tgid, struct ebpfMonHits *hits);

/* Events that the kernel part lost since it was loaded, by reason. Zeros when nothing is loaded. */
void ebpfMonKernelGetLost(uint64_t lost[EBPFMON_LOST_KERNEL]);

/* Bytes that all tables take now, those that are found by slot too. */
size_t ebpfMonKernelCountMemory(void);

/* Calls "each" for every root that has a chain. */
void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);

/* Calls "each" for every record that has processed asynchronously. */
void ebpfMonKernelEachAsync(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat), void *arg);

/* Calls "each" for every thread of an IOC that was seen; perhaps twice for one. */
void ebpfMonKernelEachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg);

/* When a lock set was released last (monotonic ns). 0: not seen. */
uint64_t ebpfMonKernelGetReleased(uint32_t tgid, uint64_t lockSet);

/* A table that queries share: "threads", "targets", "recIndex", "recState" or "causes". -1: nothing is loaded. The
 * descriptor stays the kernel part's. */
int ebpfMonKernelGetTableFd(const char *name);

/* What waited in the queues of an IOC. 0, or -1: nothing is known. */
int ebpfMonKernelGetQueues(uint32_t tgid, struct ebpfMonQueues *queues);

/* The registers of a thread as it entered the kernel last; it is not stopped for it. 0, or -1: it has ended, or this
 * kernel cannot tell. One thread of ours at a time. */
int ebpfMonKernelGetRegs(uint32_t tid, struct ebpfMonTaskRegs *regs);

#endif
