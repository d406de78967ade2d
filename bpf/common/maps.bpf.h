/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * The tables that the programs share. maps.bpf.c defines them, and the other files declare them; the BPF linker
 * connects both by name. The user part sets the size of each table that has size 1 here (except "blank") before they
 * are loaded. Keys and values that the user part uses are in ebpfMonTable.h; the others are in thread.bpf.h.
 */
#ifndef EBPFMON_MAPS_BPF_H
#define EBPFMON_MAPS_BPF_H

#ifndef MAP
#define MAP extern
#endif

#include "common/readMaps.bpf.h"

MAP struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* Nonzero: no probe was hit since the user part set it. The next hit clears it, and wakes the reader. */
extern volatile __u32 silent;

/* How many programs of queries and of asyn's ports need to know in which chain a thread is. The user part writes it. */
extern volatile __u32 rootsNeeded;

/* Elements of the map "roots" that are not free. */
extern volatile __u32 rootsUsed;

/* Nonzero: the map "asyncs" had an element since the programs were loaded. */
extern volatile __u32 hasAsyncs;

/* Nonzero: code outside of Base was seen to process a record since the programs were loaded (struct
 * thread.processed). */
extern volatile __u32 hasParts;

/* The element of an IOC is at ebpfMonShareOf(iocId). */
extern struct ebpfMonShare shares[EBPFMON_SHARES];

/* The time of the last put to a link, to SCAN, or to a field that controls time stamps: after it the last record of a
 * stretch may not tell of all records. 0: there was none. The element of an IOC is at ebpfMonShareOf(iocId), too. */
extern volatile __u64 stretchPuts[EBPFMON_SHARES];

/* The targets, a bit by process id. Bits are set, but not cleared: another process may have the same bit. */
extern volatile __u64 targetBits[EBPFMON_TARGET_WORDS];

/* The number of each probe that is attached, by IOC and program (probe/attach.c). A probe has its place here and its
 * number in its cookie. */
extern volatile __u32 probeNumbers[EBPFMON_PROBES];

/* Each trap adds to it: an array costs less than a hash table. */
MAP TABLE(hits, PERCPU_ARRAY, EBPFMON_TARGETS_MAX, __u32, struct ebpfMonHits);

MAP TABLE(queues, HASH, EBPFMON_TARGETS_MAX, __u32, struct ebpfMonQueues);

/* By thread id, while passes are watched. */
MAP TABLE(groupThreads, HASH, 1, __u32, struct groupThread);

/* The first state of a thread, which is too large for the stack. */
MAP TABLE(blank, ARRAY, 1, __u32, struct thread);

MAP struct { BLOCKS_OF(struct ebpfMonRecConf, EBPFMON_BLOCK); } recConf SEC(".maps");

MAP struct { BLOCKS_OF(struct ebpfMonClosurePair, EBPFMON_BLOCK); } closure SEC(".maps");

/* NULL: no IOC has this slot. */
static __always_inline struct ebpfMonRecConf *findConf(__u32 slot)
{
    return findInBlocks(&recConf, slot, EBPFMON_BLOCK);
}

MAP struct { BLOCKS_OF(struct ebpfMonRootStat, EBPFMON_ROOT_BLOCK); } roots SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_QUEUE);
    __uint(max_entries, 1);
    __type(value, __u32);
} freeRoots SEC(".maps");

MAP TABLE(asyncs, HASH, 1, __u32, struct ebpfMonAsyncStat);

MAP TABLE(lists, HASH, EBPFMON_LISTS_MAX, struct ebpfMonListKey, struct ebpfMonList);

MAP TABLE(plainPrograms, HASH, EBPFMON_PLAIN_MAX, struct ebpfMonProgram, __u8);

MAP TABLE(found, HASH, EBPFMON_TARGETS_MAX, __u32, __u8);

MAP TABLE(passNotes, HASH, 1, __u32, struct ebpfMonPassNotes);

/* When a lock set was released last, to know how long another thread waited for it. */
MAP TABLE(released, LRU_HASH, EBPFMON_RELEASED_MAX, struct ebpfMonLockKey, __u64);

MAP TABLE(queued, LRU_HASH, EBPFMON_QUEUED_MAX, struct queueKey, struct inQueue);

/* Chains that were kept and handed something over. The chains to which that leads are kept, too. */
MAP TABLE(kept, LRU_HASH, EBPFMON_KEPT_MAX, struct chainKey, __u32);

MAP TABLE(arrays, HASH, EBPFMON_ARRAYS_MAX, struct ebpfMonFieldKey, struct ebpfMonArrayConf);

/* The process that opened a local connection, by the namespace of its socket. Connections that have ended stay, the
 * last EBPFMON_ENDED_SHARE of each share of the users, because packets and events are read later. Not LRU: somebody who
 * opens and closes thousands of connections would hide who opened the others. */
MAP TABLE(owners, HASH, EBPFMON_OWNERS_MAX, struct ebpfMonPeer, struct ebpfMonOwned);

/* The connections that have ended: the n-th of a share is at n % EBPFMON_ENDED_SHARE of its places. */
MAP TABLE(endedPlaces, ARRAY, EBPFMON_ENDED_MAX, __u32, struct ebpfMonPeer);

extern volatile __u32 endedOwnersCount[EBPFMON_ENDED_SHARES];

/* Connections for which "owners" had no room. In the object for old kernels also those that have ended. */
MAP TABLE(endedOwners, LRU_HASH, EBPFMON_ENDED_MAX, struct ebpfMonPeer, struct ebpfMonOwned);

/* Connections that have ended, when another one has the same ends. owner.pid 0: of a client that is not known. */
MAP TABLE(earlier, LRU_HASH, EBPFMON_EARLIER_MAX, struct ebpfMonEarlierKey, struct ebpfMonOwned);

/* In which namespace the socket of a client is, by a connection without its namespace: for servers in another one. Not
 * of loopback. Of several such connections it is the one that was open first. */
MAP TABLE(clientNetns, HASH, EBPFMON_OWNERS_MAX, struct ebpfMonPeer, __u32);

/* The connections that watched IOCs have served. They stay when they have ended, because packets are read later. */
MAP TABLE(served, LRU_HASH, EBPFMON_SERVED_MAX, struct ebpfMonPeer, struct ebpfMonServed);

MAP TABLE(certificates, LRU_HASH, EBPFMON_CERTIFICATES_MAX, struct ebpfMonPeer, struct ebpfMonCertificate);

/* Who connects, while connect() has not chosen the local port yet. */
MAP TABLE(connectPlaces, ARRAY, 1u << CONNECT_PLACES_LOG, __u32, struct connectPlace);

/* The same by the address of struct sock, if the place is another one's. */
MAP TABLE(connecting, LRU_HASH, EBPFMON_CONNECTS_MAX, __u64, struct ebpfMonOwner);

/* Who called dbProcessNotify(). */
MAP TABLE(notifies, LRU_HASH, EBPFMON_NOTIFIES_MAX, struct notifyKey, struct notified);

MAP TABLE(lost, ARRAY, EBPFMON_LOST_KERNEL, __u32, __u64);

#endif
