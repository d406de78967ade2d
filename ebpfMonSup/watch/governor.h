/* SPDX-License-Identifier: BSD-3-Clause */
/* How closely a target is watched now: what was asked, as far as its budget allows. Target thread only. */
#ifndef EBPFMON_GOVERNOR_H
#define EBPFMON_GOVERNOR_H

#include "watch/target.h"

/* Attaches and detaches as t->asked, t->ceiling and t->running say. */
void ebpfMonGovernorApplyLevel(ebpfMonTarget *t, const ebpfMonFilter *filter);

/* Once a second: measures what we took from the target, and steps down or up. Nonzero: apply. */
int ebpfMonGovernorCheckBudget(ebpfMonTarget *t, double budget, uint64_t now);

#endif
