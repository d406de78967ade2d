/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables of the loaded kernel part (kernelLoad.h) that have a key. Each function makes one or more system calls. So
 * no thread calls one while it holds a lock that the event thread needs. One exception: once a second, the rankings
 * read the asynchronous records under the targets lock. Any thread, unless a function says otherwise.
 */
#ifndef EBPFMON_KERNELTABLES_H
#define EBPFMON_KERNELTABLES_H

#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "ebpfMonTable.h"

/* --- connections ---
 *
 * Connections, as the kernel part knows them: who opened one, and whether a watched IOC has served it. Any thread.
 */

/* What is known of a connection whose client is on this host. "first": its first numbers; zeros: they are not known,
 * and it is the last one with these ends. Without it (NULL), only a client in namespace peer->netns is found. Returns
 * the namespace of its socket; 0: it is not known. */
uint32_t ebpfMonKernelGetOwned(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwned *own);
/* Nonzero: a socket of this host has, or had, a connection with exactly these first numbers. */
int ebpfMonKernelHasBegun(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first);
/* The same; only the process that opened it. */
uint32_t ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwner *owner);
/* Nonzero: a socket of a server of this host has this connection, with these first numbers. "peer": with the namespace
 * of this socket, as for the next two. Not known are loopback, clients of the same namespace, and what is older than
 * the monitor; others only if ebpfMonKernelMayMissAccepted. */
int ebpfMonKernelIsAccepted(const struct ebpfMonPeer *peer, struct ebpfMonFirst *first);
int ebpfMonKernelMayMissAccepted(void);
/* Nonzero: a watched IOC has received data of this connection. "first": also the first sequence numbers agree (NULL:
 * they are not known). "seq": the data reach beyond this number (NULL: any data). */
int ebpfMonKernelIsServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, const uint32_t *seq);
/* Nonzero: a watched IOC has proved by a certificate who the client of this connection is. */
int ebpfMonKernelGetCertificate(const struct ebpfMonPeer *peer, struct ebpfMonCertificate *certificate);
/* Nonzero: a server of this host had received data of this connection, which has ended, from a client that
 * ebpfMonKernelGetOwned does not know in the same namespace. "first": its first numbers; zeros: they are not known. */
int ebpfMonKernelWasServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                           struct ebpfMonServed *served);
/* "peer": with the namespace of the client's socket. 0, or -1: the table has no room. */
int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);

/* --- histograms of roots ---
 *
 * The histograms of roots. Records in scan lists get one here. The kernel part gives one to another record when it is a
 * root for the first time; this module makes the room. Histograms are in our memory, so to read them takes no system
 * call. While a kernel part is loaded (kernelLoad.h).
 */

/* Gives the record with this slot a histogram. Returns its number; 0: there is no room. Follower only. */
uint32_t ebpfMonKernelTakeRoot(uint32_t slot);

/* Makes room for roots that nobody expects: other records that a put processes for the first time. If there are too
 * many of them at once, if the kernel gives no memory, or if the table has its greatest size, their chains are counted
 * as lost. Once a second. Follower only. */
void ebpfMonKernelReserveRoots(void);

/* Removes the histograms of "count" slots from "first" on, when no program uses these slots any more. Follower only. */
void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count);

/* Roots that have a histogram. Any thread. */
uint32_t ebpfMonKernelCountRoots(void);

/* Calls "each" for every root to which something was added, with a copy. Any thread. */
void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);

/* --- tables with a key --- */

/* --- Written by the follower. 0, or -1 with errno. --- */

int  ebpfMonKernelSetTarget(uint32_t tgid, const struct ebpfMonTargetConf *conf);
void ebpfMonKernelRemoveTarget(uint32_t tgid);

/* A new number for the probes of this program (enum ebpfMonProg) in this IOC: their cookie. Those with an earlier
 * number do nothing any more, though the kernel may not have removed them yet. 0: they need none (no uprobe_multi). */
uint64_t ebpfMonKernelNumberProbe(uint32_t tgid, unsigned prog);
void ebpfMonKernelTakeProbeAway(uint64_t cookie); /* those with this number do nothing any more */

/* The slot of each record: the record at address precord[i] gets slot first + i. */
int  ebpfMonKernelSetRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count, uint32_t first);
void ebpfMonKernelRemoveRecordIndex(uint32_t tgid, const uint64_t *precord, uint32_t count);

/* The elements of an array field: which members of the record have their address and their number. */
int  ebpfMonKernelSetArray(uint32_t tgid, uint64_t pfldDes, const struct ebpfMonArrayConf *conf);
void ebpfMonKernelRemoveArray(uint32_t tgid, uint64_t pfldDes);

/* The records that a scan list processes. The key of the list is the address of its mutex in the IOC. */
int  ebpfMonKernelSetList(uint32_t tgid, uint64_t mutex, const struct ebpfMonList *list);
void ebpfMonKernelRemoveLists(uint32_t tgid); /* all of this IOC */

/* isPlain nonzero: processes that run this program are no IOCs. Their starts cause no events, unless the process was
 * found as an IOC, or is some seconds old. */
int  ebpfMonKernelSetPlain(const struct ebpfMonProgram *program, int isPlain);

/* isFound nonzero: this process is an IOC, and each program that it starts causes an event. */
void ebpfMonKernelSetFound(uint32_t tgid, int isFound);

/* Records that go to another scan list. Begin: the kernel part notes them from now on. Get: those that it has noted. */
int  ebpfMonKernelBeginPassNotes(uint32_t tgid);
int  ebpfMonKernelGetPassNotes(uint32_t tgid, struct ebpfMonPassNotes *notes);

/* Remove what is known of the asynchronous records among "count" slots from "first" on, and of the threads of this
 * process. */
void ebpfMonKernelRemoveAsyncs(uint32_t first, uint32_t count);
void ebpfMonKernelRemoveThreads(pid_t pid);

/* Removes what is known of threads that do not live any more: for ends that the kernel part did not see. It looks at
 * /proc for each thread that is known. */
void ebpfMonKernelRemoveEnded(void);

/* --- Any thread --- */

/* The traps of one IOC since the monitor watches it, summed over the CPUs. */

void ebpfMonKernelGetHits(uint32_t tgid, struct ebpfMonHits *hits);

/* The events that the kernel part lost since it was loaded, by reason. Zeros: nothing is loaded. No system call. */
void ebpfMonKernelGetLost(uint64_t lost[EBPFMON_LOST_KERNEL]);

/* How often the kernel did not run a program of ours at a tracepoint (below): an IOC or a thread may have
 * ended unseen, or received, or connected. A system call for each of these programs. */
uint64_t ebpfMonKernelCountSkipped(void);

/* Nonzero: in the last seconds a receive of a thread may not have been seen, so what is known of the connection that it
 * serves may be old. One thread of ours at a time. */
int ebpfMonKernelMissedReceive(void);

/* The memory (bytes) that all tables take now, with those that are found by slot. */
size_t ebpfMonKernelCountMemory(void);

/* Calls "each" for every record that has processed asynchronously. */
void ebpfMonKernelEachAsync(void (*each)(void *arg, uint32_t slot, const struct ebpfMonAsyncStat *stat), void *arg);

/* Who began the asynchronous processing that the record of this slot did last (ebpfMonRecState.noted tells whether it
 * goes on). 0, or -1: not known. */
int ebpfMonKernelFindCause(uint32_t slot, struct ebpfMonCauseEvent *cause);

/* How often the record of this slot ended an asynchronous processing with the alarm status TIMEOUT. */
uint64_t ebpfMonKernelCountTimeouts(uint32_t slot);

/* Calls "each" for every thread of an IOC that was seen. It may call it twice for the same thread. */
void ebpfMonKernelEachThread(void (*each)(void *arg, uint32_t tid, const struct ebpfMonThread *seen), void *arg);

/* The time at which a lock set was released last (monotonic ns). 0: not seen. */
uint64_t ebpfMonKernelGetReleased(uint32_t tgid, uint64_t lockSet);

/* More programs (below 0: fewer) look at the root of the chain that a thread is in. While there are any, the root is
 * always known in chains that are timed, which costs more (bpf/quickChain.bpf.c). */
void ebpfMonKernelNeedRoots(int more);

/* The file descriptor of a table that queries use too: "threads", "targets", "recIndex", "recState" or "causes". It
 * stays the kernel part's. -1: nothing is loaded. */
int ebpfMonKernelGetTableFd(const char *name);

/* What waited in the queues of an IOC. 0, or -1: nothing is known of this IOC. */
int ebpfMonKernelGetQueues(uint32_t tgid, struct ebpfMonQueues *queues);

typedef struct {
    struct ebpfMonTaskRegs   regs;
    struct ebpfMonTaskReturn ret[EBPFMON_TASK_RETURNS];
    unsigned returns;
} ebpfMonKernelRegs;

/* The registers of a thread when it last entered the kernel, and its return addresses that return probes have replaced.
 * The thread is not stopped. 0, or -1: it has ended, or this kernel cannot tell. One thread of ours at a time. */
int ebpfMonKernelGetRegs(uint32_t tid, ebpfMonKernelRegs *found);

/* --- counters of each CPU ---
 *
 * Counters that the kernel part keeps for each CPU. */

struct bpf_map;

/* Adds up an entry of a per-CPU table over all CPUs. Its value, and "sum", are "size" bytes of 64-bit counters; "key"
 * is the address of the entry's key. All 0 if there is no entry, or no memory. */
void ebpfMonPerCpuSum(const struct bpf_map *map, const void *key, void *sum, size_t size);

/* --- programs that the kernel did not run ---
 *
 * Programs that the kernel did not run. One at a tracepoint does not run while the same program runs on this CPU: on a
 * kernel that preempts programs (from 7.0 on all of x86) a thread that interrupts it does something that the program
 * does not see. The kernel counts that (recursion_misses, since 5.12). Programs of uprobes always run. Any thread.
 */

/* How often the kernel left out this program ("fd"), and all loaded programs of an object, since they were loaded. */
uint64_t ebpfMonSkippedRunsOf(int fd);
uint64_t ebpfMonSkippedRunsCount(const struct bpf_object *object);

#endif
