/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passes of scan lists, each watched by two traps, instead of chains (bpf/pass/sweep.bpf.c): the tables that the kernel
 * part needs for this, and the change from chains to passes and back. Only recordTables uses this module, in the
 * follower's thread.
 */
#ifndef EBPFMON_SWEEPS_H
#define EBPFMON_SWEEPS_H

#include "watch/recordIndex.h"
#include "watch/sweepPlan.h"

/* Puts a plan in force, instead of the one before, and owns it; its closures must be in force. 0, or -1: there is no
 * room for its lists; then the plan before stays, and this one is freed. */
int  ebpfMonSweepsWrite(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t, ebpfMonSweepPlan *plan);

/* Notes that no thread is inside a group. Call it before sweeps begin. */
void ebpfMonSweepsReset(ebpfMonTarget *t);

/* Removes what Write put into the tables. */
void ebpfMonSweepsRemove(const ebpfMonRecordTablesKernel *kernel, ebpfMonTarget *t);

/* Call it while both passes and chains are watched. Nonzero: every processing was counted, so the passes need not be
 * watched any more. */
int  ebpfMonSweepsAreSettled(const ebpfMonTarget *t);

/* A byte for each record, nonzero: it may have processed twice between two looks. NULL without memory. */
uint8_t *ebpfMonSweepsFindUnsettled(const ebpfMonTarget *t);

#endif
