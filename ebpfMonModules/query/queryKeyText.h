/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a key of a query as text. The query thread only. */
#ifndef EBPFMON_QUERYKEYTEXT_H
#define EBPFMON_QUERYKEYTEXT_H

#include "shared/ebpfMonQuery.h"
#include "query/queryCells.h"
#include "watch/target.h"

/* --- names of locks ---
 *
 * The names of locks in keys of a query. The mutexes of an IOC are read from its memory when a lock is not known; for
 * large IOCs this takes some 0.1 s, so they are not read again at once. The query thread only.
 */

typedef struct ebpfMonQueryLocks ebpfMonQueryLocks;

ebpfMonQueryLocks *ebpfMonQueryLocksNew(ebpfMonTargets *targets); /* NULL without memory */
void ebpfMonQueryLocksFree(ebpfMonQueryLocks *locks); /* NULL does no harm */

/* --- keys --- */

/* A place in an IOC that has a probe, and the name of the function there. */
typedef struct {
    uint32_t iocId;
    uint64_t address;
    char     name[64];
} ebpfMonQueryFunction;

/* The sources of names. */
typedef struct {
    ebpfMonTargets *targets; /* for names of IOCs and records; NULL: these are not known */
    ebpfMonQueryFunction *function; /* for names of functions; their owner frees them */
    size_t functions, room;
    ebpfMonQueryLocks *locks; /* for names of locks; NULL: no key is one */
    const ebpfMonQuerySites *sites; /* for names of sites; NULL: no key is one */
} ebpfMonQueryNames;

/* Writes the name or the number of one field. "key": its bytes. A record or function that is not known is written as
 * its address; no record, or no IOC, as "-". Takes the targets lock to look up names; may read /proc, and for locks
 * memory of the IOC. "seen": when the key was first seen (monotonic s). 0; nonzero: it may be known later, so call this
 * again at the next look. */
int ebpfMonQueryKeyText(const struct ebpfMonQueryField *field, const uint8_t *key, const ebpfMonQueryNames *names,
                        double seen, char *text, size_t size);

#endif
