/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How closely an IOC is watched now: what was asked for it, as far as its budget allows. Attaches and detaches the
 * probes. The follower's alone; what other threads read of a target it writes under their lock.
 */
#ifndef EBPFMON_GOVERNOR_H
#define EBPFMON_GOVERNOR_H

#include "probe/calibrate.h"
#include "watch/recordTables.h"

typedef struct ebpfMonGovernor ebpfMonGovernor;

/* "costs": what a trap costs here; all three must outlive the governor. NULL without memory. */
ebpfMonGovernor *ebpfMonGovernorNew(ebpfMonTargets *targets, ebpfMonRecordTables *tables, const ebpfMonCosts *costs);
void ebpfMonGovernorFree(ebpfMonGovernor *governor); /* NULL does no harm */

/* Sets what was asked for the IOC, then attaches and detaches as that, its budget and its state say. */
void ebpfMonGovernorApplyLevel(ebpfMonGovernor *governor, ebpfMonTarget *t, ebpfMonLevel asked, int reference,
                               const ebpfMonFilter *filter);

/* Nonzero: it is time to look whether passes of its scan lists can be watched, and not each chain. */
int ebpfMonGovernorTriesSweeps(const ebpfMonTarget *t, uint64_t now);

/* Times the chains of its scan lists, or leaves it, as is their turn now. Returns the seconds until it is to be called
 * again. */
double ebpfMonGovernorTakeTurn(ebpfMonGovernor *governor, ebpfMonTarget *t, const ebpfMonFilter *filter, uint64_t now);

/* Measures what watching took from the IOC since the last call (once a second), to keep to the budget of the filter.
 * Nonzero: another level is allowed now, and is to be applied. */
int ebpfMonGovernorCheckBudget(ebpfMonGovernor *governor, ebpfMonTarget *t, const ebpfMonFilter *filter, uint64_t now);

#endif
