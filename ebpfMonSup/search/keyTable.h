/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of fixed size by 64-bit key that is never full: a new entry takes the place of the one that was touched the
 * longest time ago, or, every other time, of the newest one. Entries that proved their worth are raised: they lose
 * their place to new ones only beyond three quarters of the table, so that a flood of invented keys does not drive out
 * what is known. Not locked: one thread at a time.
 */
#ifndef EBPFMON_KEYTABLE_H
#define EBPFMON_KEYTABLE_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_KEY_NONE UINT32_MAX

/* What each entry begins with. */
typedef struct {
    uint64_t key;
    uint64_t touched;      /* ns */
    uint32_t chain;        /* next of its bucket, or next free one */
    uint32_t newer, older;
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
    uint64_t seed;         /* so that nobody outside can choose buckets */
    uint64_t replaced;     /* entries that lost their place while they were in use */
    uint32_t unused;
    ebpfMonKeyList list[2];/* plain, raised */
} ebpfMonKeyTable;

void ebpfMonKeyTableInit(ebpfMonKeyTable *table, void *entries, size_t size, uint32_t number, uint32_t *buckets,
                    uint64_t seed);

/* NULL: there is no such entry. */
void *ebpfMonKeyTableFind(const ebpfMonKeyTable *table, uint64_t key);

/* The entry of this key, touched; a new entry is zero behind its head. Never NULL. */
void *ebpfMonKeyTableGet(ebpfMonKeyTable *table, uint64_t key, uint64_t time);

void ebpfMonKeyTableRaise(ebpfMonKeyTable *table, void *entry);
void ebpfMonKeyTableRemove(ebpfMonKeyTable *table, void *entry);

/* Removes what was not touched for "age" ns. */
void ebpfMonKeyTableExpire(ebpfMonKeyTable *table, uint64_t time, uint64_t age);

/* Entries of one list, newest first: start with NULL. */
void *ebpfMonKeyTableGetNext(const ebpfMonKeyTable *table, int raised, const void *entry);

#endif
