/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hash table of fixed size, by 64-bit key, which always has room: if it is full, a new entry replaces the oldest or
 * the newest entry, in turn. The oldest is the entry that was not touched for the longest time.
 *
 * The caller can raise an entry that is worth keeping. As long as at most three quarters of the entries are raised, a
 * new entry never replaces a raised one. So a flood of invented keys does not drive out what is known.
 *
 * No lock: one thread at a time. The caller owns the memory of the entries and buckets. No function fails.
 */
#ifndef EBPFMON_KEYTABLE_H
#define EBPFMON_KEYTABLE_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_KEY_NONE UINT32_MAX

/* The head of each entry. Only this module writes it. */
typedef struct {
    uint64_t key;
    uint64_t touched;      /* ns */
    uint32_t chain;        /* the next entry of its bucket, or the next free entry */
    uint32_t newer, older; /* its neighbours in its list */
    uint8_t  used, raised;
} ebpfMonKeyHead;

typedef struct {
    uint32_t newest, oldest, members;
} ebpfMonKeyList;

typedef struct {
    char    *entries;      /* the caller's array of "number" entries, "size" bytes each */
    size_t   size;
    uint32_t number;
    uint32_t *buckets;     /* the caller's, as many as entries; a power of two */
    uint64_t seed;         /* a secret: else a sender of packets could put all keys into one bucket */
    uint64_t replaced;     /* how many entries new ones have replaced */
    uint32_t unused;       /* the first free entry */
    ebpfMonKeyList list[2];/* entries that are not raised, and raised ones */
} ebpfMonKeyTable;

void ebpfMonKeyTableInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed);

/* NULL: there is no such entry. */
void *ebpfMonKeyTableFind(const ebpfMonKeyTable *table, uint64_t key);

/* Finds the entry of this key or makes a new one, and touches it at "time" (ns). A new entry is zero behind its
 * head. Never NULL. */
void *ebpfMonKeyTableGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time);

/* Both take an entry that is in the table. */
void ebpfMonKeyTableRaise(ebpfMonKeyTable *table, void *entry);
void ebpfMonKeyTableRemove(ebpfMonKeyTable *table, void *entry);

/* Removes the entries that were not touched for "age" ns before "time" (ns). */
void ebpfMonKeyTableExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age);

/* The entry after "entry" in its list, newest first; NULL as "entry": the first one. Returns NULL after the last
 * one. */
void *ebpfMonKeyTableGetNext(const ebpfMonKeyTable *table, int raised, const void *entry);

#endif
