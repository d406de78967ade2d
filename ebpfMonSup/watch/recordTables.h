/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The records of the watched IOCs in the kernel part's tables: each record gets a slot, its closure, and an entry in
 * the index by address. The follower's alone; what other threads read of a target it writes under their lock.
 */
#ifndef EBPFMON_RECORDTABLES_H
#define EBPFMON_RECORDTABLES_H

#include "watch/linkPuts.h"
#include "watch/recordIndex.h"
#include "watch/target.h"

typedef struct ebpfMonRecordTables ebpfMonRecordTables;

/* Room for as many records and closures as kernel->tables->size says. NULL without memory. */
ebpfMonRecordTables *ebpfMonRecordTablesNew(ebpfMonTargets *targets, const ebpfMonRecordTablesKernel *kernel);
void ebpfMonRecordTablesFree(ebpfMonRecordTables *tables); /* NULL does no harm */

/* Adds all records of an IOC whose iocInit is done: links, slots, closures, index. 0, or -1 with the reason in its
 * note. */
int  ebpfMonRecordTablesAdd(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Adds where its array fields have their elements, already while it starts: autosave writes to them then. */
void ebpfMonRecordTablesAddArrays(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Reads the links of record "index" again; where they changed, the closures are made anew. Counts go on. "since": they were
 * not changed before that (monotonic ns), UINT64_MAX: perhaps they were. */
void ebpfMonRecordTablesUpdateLinks(ebpfMonRecordTables *tables, ebpfMonTarget *t, uint32_t index, uint64_t since);

/* Marks what may have processed, and was not counted, by a put that was superseded. To be called after UpdateLinks of its
 * record, with the links of other such puts. */
void ebpfMonRecordTablesMarkSuperseded(ebpfMonRecordTables *tables, ebpfMonTarget *t, const ebpfMonLinkPut *put,
                                       const ebpfMonLinkEdge *edges, unsigned edgeCount);

/* The same for all records, when it is not known whose links changed. */
void ebpfMonRecordTablesUpdateAllLinks(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* The trap of recGblFwdLink was attached or detached: the records that want it are counted the other way from now on.
 * "isFirst": nothing has been counted without it; call it before it is attached then. */
void ebpfMonRecordTablesSetTrap(ebpfMonRecordTables *tables, ebpfMonTarget *t, int attached, int isFirst);

/* Lets go from the trap the records whose type a trial has shown to be counted well by the snapshot (typeTrial.h), one
 * by one, when no chain has them under way. Once a second until none is left. */
void ebpfMonRecordTablesReleaseTrap(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* All counts are lower bounds from now on: its records process in a way that is not followed. */
void ebpfMonRecordTablesMarkMissed(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Notes which records match the filter's pattern. */
void ebpfMonRecordTablesSetShown(ebpfMonRecordTables *tables, ebpfMonTarget *t, const char *pattern);

/* Passes are watched from now on, not chains, as soon as the probes are attached. 0, or -1: its records do not allow it, or
 * it does not pay. */
int  ebpfMonRecordTablesBeginSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Nonzero: chains are watched, too, and nothing is left that only the end of a pass would show. After a while what is left
 * is marked. */
int  ebpfMonRecordTablesSettleSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t, uint64_t now);

/* The probes for passes are off, and the kernel part knows it. */
void ebpfMonRecordTablesEndSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Follows records that went to other scan lists. Once a second while passes are watched. Nonzero: the level is to be
 * applied anew. */
int  ebpfMonRecordTablesFollowSweeps(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Counting begins now, after a time in which the probes were off: what the IOC processed meanwhile is not counted.
 * "wasInterrupted": nobody asked for that time, so the records that it concerns are marked. */
void ebpfMonRecordTablesBeginCounting(ebpfMonRecordTables *tables, ebpfMonTarget *t, int wasInterrupted);

/* Removes its records from the tables by pid and address: before another program gets this pid. */
void ebpfMonRecordTablesRemoveIndex(ebpfMonRecordTables *tables, ebpfMonTarget *t);

/* Removes it from all tables. */
void ebpfMonRecordTablesRemove(ebpfMonRecordTables *tables, ebpfMonTarget *t);

#endif
