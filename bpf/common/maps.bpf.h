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

/* How many programs of queries and of asyn's ports look which chain a thread is in. The user part writes it. */
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

/* When a put was last seen after which the last record of a stretch may not tell of all: to a link, to SCAN, to a field
 * that controls time stamps; 0: never. The element of an IOC is at ebpfMonShareOf(iocId), too. */
extern volatile __u64 stretchPuts[EBPFMON_SHARES];

/* The targets, a bit by process id. Bits are set, but not cleared: another process may have the same bit. */
extern volatile __u64 targetBits[EBPFMON_TARGET_WORDS];

/* The number of each probe that is attached, by IOC and program (probe/attach.c). A probe has its place here and its
 * number in its cookie. */
extern volatile __u32 probeNumbers[EBPFMON_PROBES];

MAP struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); /* each trap adds to it: an array costs less than a hash table */
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonHits);
} hits SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonQueues);
} queues SEC(".maps");

/* By thread id, while passes are watched. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct groupThread);
} groupThreads SEC(".maps");

/* The first state of a thread, which is too large for the stack. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct thread);
} blank SEC(".maps");

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

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonAsyncStat);
} asyncs SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_LISTS_MAX);
    __type(key, struct ebpfMonListKey);
    __type(value, struct ebpfMonList);
} lists SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_PLAIN_MAX);
    __type(key, struct ebpfMonProgram);
    __type(value, __u8);
} plainPrograms SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_TARGETS_MAX);
    __type(key, __u32);
    __type(value, __u8);
} found SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonPassNotes);
} passNotes SEC(".maps");

/* When a lock set was released last, to know how long another thread waited for it. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_RELEASED_MAX);
    __type(key, struct ebpfMonLockKey);
    __type(value, __u64);
} released SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_QUEUED_MAX);
    __type(key, struct queueKey);
    __type(value, struct inQueue);
} queued SEC(".maps");

/* Chains that were kept and handed something over. The chains to which that leads are kept, too. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_KEPT_MAX);
    __type(key, struct chainKey);
    __type(value, __u32);
} kept SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_ARRAYS_MAX);
    __type(key, struct ebpfMonFieldKey);
    __type(value, struct ebpfMonArrayConf);
} arrays SEC(".maps");

/* The process that opened a local connection, by the namespace of its socket, and the last EBPFMON_ENDED_SHARE of those
 * that have ended of each share of the users, because packets and events are read later. Not LRU: somebody who opens
 * and closes thousands of connections would hide who opened the others. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_OWNERS_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonOwned);
} owners SEC(".maps");

/* The connections that have ended: the n-th of a share is at n % EBPFMON_ENDED_SHARE of its places. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPFMON_ENDED_MAX);
    __type(key, __u32);
    __type(value, struct ebpfMonPeer);
} endedPlaces SEC(".maps");

extern volatile __u32 endedOwnersCount[EBPFMON_ENDED_SHARES];

/* Connections for which "owners" had no room. In the object for old kernels also those that have ended. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_ENDED_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonOwned);
} endedOwners SEC(".maps");

/* In which namespace the socket of a client is, by a connection without its namespace: for servers in another one. Not
 * of loopback. Of several such connections it is the one that was open first. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, EBPFMON_OWNERS_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, __u32);
} clientNetns SEC(".maps");

/* The connections that watched IOCs have served. They stay when they have ended, because packets are read later. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_SERVED_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonServed);
} served SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CERTIFICATES_MAX);
    __type(key, struct ebpfMonPeer);
    __type(value, struct ebpfMonCertificate);
} certificates SEC(".maps");

/* Who connects, while connect() has not chosen the local port yet. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1u << CONNECT_PLACES_LOG);
    __type(key, __u32);
    __type(value, struct connectPlace);
} connectPlaces SEC(".maps");

/* The same by the address of struct sock, if the place is another one's. */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CONNECTS_MAX);
    __type(key, __u64);
    __type(value, struct ebpfMonOwner);
} connecting SEC(".maps");

/* Who called dbProcessNotify(). */
MAP struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_NOTIFIES_MAX);
    __type(key, struct notifyKey);
    __type(value, struct notified);
} notifies SEC(".maps");

MAP struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPFMON_LOST_KERNEL);
    __type(key, __u32);
    __type(value, __u64);
} lost SEC(".maps");

#endif
