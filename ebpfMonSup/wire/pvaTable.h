/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of things by a 32-bit number that the peers choose. */
#ifndef EBPFMON_PVATABLE_H
#define EBPFMON_PVATABLE_H

#include "wire/protocol.h"

typedef struct pvaLink { struct pvaLink *next; uint32_t key; } pvaLink;

typedef struct {
    pvaLink **bucket;
    unsigned  size, count; /* size: a power of two */
    uint32_t  seed;        /* so that a peer cannot know which numbers share a bucket */
} pvaTable;

pvaLink *ebpfMonPvaTableFind(const pvaTable *table, uint32_t key);
/* -1: no memory. A second thing with the same number hides the first. */
int  ebpfMonPvaTableAdd(ebpfMonCircuit *circuit, pvaTable *table, pvaLink *link, uint32_t key);
void ebpfMonPvaTableRemove(pvaTable *table, pvaLink *link);
void ebpfMonPvaTableFree(ebpfMonCircuit *circuit, pvaTable *table); /* the table, not the things */

#define PVA_OF(link, type, member) ((type *)((char *)(link) - offsetof(type, member)))

#endif
