/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table by a 32-bit number that the peers choose. Each element has a pvaLink as a member. */
#ifndef EBPFMON_PVATABLE_H
#define EBPFMON_PVATABLE_H

#include "wire/protocol.h"

typedef struct pvaLink { struct pvaLink *next; uint32_t key; } pvaLink;

typedef struct {
    pvaLink **bucket;
    unsigned  size, count; /* size: a power of two */
    uint32_t  seed;        /* changes the hash, so that a peer cannot know which numbers share a bucket */
} pvaTable;

pvaLink *ebpfMonPvaTableFind(const pvaTable *table, uint32_t key);
/* Adds an element. An element with the same number is hidden by it. 0, or -1: no memory. */
int  ebpfMonPvaTableAdd(ebpfMonCircuit *circuit, pvaTable *table, pvaLink *link, uint32_t key);
void ebpfMonPvaTableRemove(pvaTable *table, pvaLink *link);
void ebpfMonPvaTableFree(ebpfMonCircuit *circuit, pvaTable *table); /* frees the table, not its elements */

#define PVA_OF(link, type, member) ((type *)((char *)(link) - offsetof(type, member)))

#endif
