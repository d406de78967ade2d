/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes of scan lists, watched by one trap each, in place of chains (bpf/sweep.bpf.c): what the kernel part needs for it
 * in its tables, and how one goes over from chains to passes and back. A part of recordTables, which alone uses it. The
 * follower's.
 */
#ifndef EBPFMON_SWEEPS_H
#define EBPFMON_SWEEPS_H

#include "watch/recordIndex.h"
#include "watch/sweepPlan.h"

/* Puts a plan in force, in place of the one before, and owns it; the closures that it belongs to are in force. 0, or -1: no
 * room for its lists; then the plan before stays, and this one is freed. */
int  ebpfMonSweepsWrite(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, ebpfMonSweepPlan *plan);

/* No thread is in a group: before sweeps begin. */
void ebpfMonSweepsReset(ebpfMonTarget *t);

/* Removes what Write put into the tables. */
void ebpfMonSweepsRemove(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t);

/* Nonzero: nothing has processed that no look has seen; to be asked while both passes and chains are watched. From then on
 * the passes need not be watched any more. */
int  ebpfMonSweepsAreSettled(const ebpfMonTarget *t);

/* A byte for each record, nonzero: it may have processed twice between two looks. NULL without memory. */
uint8_t *ebpfMonSweepsFindUnsettled(const ebpfMonTarget *t);

#endif
