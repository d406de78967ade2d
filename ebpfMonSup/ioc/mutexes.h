/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mutexes of an IOC, read from its memory without stopping it: who created them, and whose lock set they are. Base
 * keeps them all in one list (epicsMutex.cpp: mutexList). The list has no symbol that other files see, but each lock
 * set has a mutex, and from one mutex the neighbours lead to all others.
 */
#ifndef EBPFMON_MUTEXES_H
#define EBPFMON_MUTEXES_H

#include "host/memory.h"
#include "ioc/catalogue.h"

typedef struct {
    uint64_t node;    /* the epicsMutexId, which points to an epicsMutexParm */
    uint64_t id;      /* the mutex of the operating system: its futex is here, in EPICS 3.14 8 bytes behind */
    uint64_t file;    /* text: the source file that created it */
    uint64_t record;  /* the first record of its lock set; 0: it is no lock set's */
    int32_t  line;    /* … and the line */
} ebpfMonMutex;

typedef struct ebpfMonMutexes ebpfMonMutexes;

/* Tries a layout on the mutex of a lock set. 1: it is right. 0: there is no lock set yet. -1: it is wrong. */
int ebpfMonMutexesAreKnown(ebpfMonMem *mem, const ebpfMonCatalogue *cat, const ebpfMonBaseRelease *base);

/* Reads the list, at most 262,144 mutexes, within the budget of "mem". record[0..count): addresses of the IOC's
 * records; "lset": offset of that field. What cannot be read is left out. NULL: no memory, or no list. */
ebpfMonMutexes *ebpfMonMutexesRead(ebpfMonMem *mem, const ebpfMonBaseRelease *base, const uint64_t *record,
                                   uint32_t count, uint16_t lset);
void ebpfMonMutexesFree(ebpfMonMutexes *mutexes); /* NULL does no harm */

size_t ebpfMonMutexesCount(const ebpfMonMutexes *mutexes);

/* Finds a mutex by its epicsMutexId, or by the address of its futex. NULL: there is none. */
const ebpfMonMutex *ebpfMonMutexesFind(const ebpfMonMutexes *mutexes, uint64_t address);

#endif
