/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closures and stretches of the watched IOCs in the kernel part's tables. Only recordTables uses this module, in
 * the follower's thread.
 */
#ifndef EBPFMON_CLOSURETABLE_H
#define EBPFMON_CLOSURETABLE_H

#include <stdint.h>

#include "ioc/closure.h"
#include "watch/target.h"

/* --- places ---
 *
 * Allocates ranges of numbers from 0 to size - 1: slots, and places in the closure table. No lock: one thread. */

typedef struct ebpfMonSlotAllocator ebpfMonSlotAllocator;

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size); /* NULL without memory */
void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *slots);   /* NULL does no harm */

/* Allocates the first free range of "count" numbers. Returns its first number; UINT32_MAX: there is none. */
uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *slots, uint32_t count);

/* Frees a range that was allocated; any other range changes nothing. */
void ebpfMonSlotAllocatorReturn(ebpfMonSlotAllocator *slots, uint32_t first, uint32_t count);

/* How many numbers are taken. */
uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *slots);

/* --- closures --- */

typedef struct ebpfMonClosureTable ebpfMonClosureTable;

/* "tables": as mapped; it must outlive this. NULL without memory. */
ebpfMonClosureTable *ebpfMonClosureTableNew(ebpfMonTargets *targets, const ebpfMonTables *tables);
void ebpfMonClosureTableFree(ebpfMonClosureTable *table); /* NULL does no harm */

/* The closures of a catalogue, by the links that it has now. NULL without memory. */
ebpfMonClosures *ebpfMonClosureTableMakeClosures(const ebpfMonCatalogue *cat);

/* The stretches of these closures. "order": the records in the order in which they are looked at. "isActive": NULL; or
 * by record, nonzero: a forward link does not process it. NULL without memory: then the kernel part looks at each
 * single record. */
ebpfMonStretches *ebpfMonClosureTableMakeStretches(const ebpfMonTarget *t, const ebpfMonClosures *c,
                                                   const uint32_t *order, const uint8_t *isActive);

/* Around a change of closures in an IOC that is counted: from Begin to End no stretch is counted as a whole. Begin
 * waits until the walks have ended that began before it. */
void ebpfMonClosureTableBeginChange(ebpfMonClosureTable *table, const ebpfMonTarget *t);
void ebpfMonClosureTableEndChange(ebpfMonClosureTable *table, const ebpfMonTarget *t);

/* Puts closures in force, instead of the ones before; "t" must have slots. While passes are watched, chains have no
 * stretches; those of scan lists are in the closures ("ahead"). 0, or -1: no room; errno is ENOSPC if the table is
 * full, otherwise the kernel gives no memory for it. */
int ebpfMonClosureTableInstall(ebpfMonClosureTable *table, ebpfMonTarget *t, const ebpfMonClosures *c);

/* Marks which chains level trace keeps: those with a record that the filter shows. Call it when the filter has
 * changed. */
void ebpfMonClosureTableMarkTraced(ebpfMonClosureTable *table, const ebpfMonTarget *t);

/* Frees the IOC's part of the table. */
void ebpfMonClosureTableRemove(ebpfMonClosureTable *table, ebpfMonTarget *t);

/* Changes an epicsTimeStamp, read from a record as one number, to a number that grows with time: the seconds are in the
 * low 32 bits of the former (epicsTime.h). */
static inline uint64_t ebpfMonClosureTableStampOrder(uint64_t time)
{
    return time << 32 | time >> 32;
}

/* Nonzero: its time stamp is later than any that was counted, for itself ("was") or with its stretch. "states": of all
 * slots. */
static inline int ebpfMonClosureTableHasMoved(volatile const struct ebpfMonRecState *states,
                                              volatile const struct ebpfMonRecState *st, uint64_t was, uint64_t time)
{
    return ebpfMonClosureTableStampOrder(time) > ebpfMonClosureTableStampOrder(was) &&
           ebpfMonClosureTableStampOrder(time) > ebpfMonClosureTableStampOrder(states[st->last].time);
}

#endif
