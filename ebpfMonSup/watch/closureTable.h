/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The closures and stretches of the watched IOCs in the kernel part's tables. A part of recordTables, which alone uses
 * it. The follower's.
 */
#ifndef EBPFMON_CLOSURETABLE_H
#define EBPFMON_CLOSURETABLE_H

#include "ioc/closure.h"
#include "watch/target.h"

typedef struct ebpfMonClosureTable ebpfMonClosureTable;

/* "tables": as mapped; it must outlive this. NULL without memory. */
ebpfMonClosureTable *ebpfMonClosureTableNew(ebpfMonTargets *targets, const ebpfMonTables *tables);
void ebpfMonClosureTableFree(ebpfMonClosureTable *table); /* NULL does no harm */

/* The closures of a catalogue, by the links that it has now. NULL without memory. */
ebpfMonClosures *ebpfMonClosureTableMakeClosures(const ebpfMonCatalogue *cat);

/* Around a change of closures in an IOC that is counted: from Begin on no stretch is counted as a whole, and Begin waits
 * until no walk is under way that may still do so. */
void ebpfMonClosureTableBeginChange(ebpfMonClosureTable *table, const ebpfMonTarget *t);
void ebpfMonClosureTableEndChange(ebpfMonClosureTable *table, const ebpfMonTarget *t);

/* Puts closures in force, in place of those before; "t" has slots. While passes are watched there are no stretches. 0, or
 * -1: no room. */
int ebpfMonClosureTableInstall(ebpfMonClosureTable *table, ebpfMonTarget *t, const ebpfMonClosures *c);

/* Marks which chains level trace keeps: those with a record that the filter shows. For when that has changed. */
void ebpfMonClosureTableMarkWanted(ebpfMonClosureTable *table, const ebpfMonTarget *t);

/* Makes the IOC's part of the table free. */
void ebpfMonClosureTableRemove(ebpfMonClosureTable *table, ebpfMonTarget *t);

/* An epicsTimeStamp, as a record has it in memory, as a number that grows with time: it has the seconds in its first 32
 * bits (epicsTime.h). */
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
