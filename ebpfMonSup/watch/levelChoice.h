/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be had of what was asked for one IOC, and the words for what cannot. Decisions alone: nothing is attached, and
 * nothing is changed in the target. The follower's.
 */
#ifndef EBPFMON_LEVELCHOICE_H
#define EBPFMON_LEVELCHOICE_H

#include "model/filter.h"
#include "watch/target.h"

/* The level that can be had: what was asked, as far as budget and the IOC's state allow. */
ebpfMonLevel ebpfMonLevelChoiceFind(const ebpfMonTarget *t);

/* The probes of a level, a bit each. */
uint32_t ebpfMonLevelChoiceFindProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way);

/* The probes that could watch passes of its scan lists, if "want" is on. 0: its level or its code does not allow it. */
uint32_t ebpfMonLevelChoiceFindSweepProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way, uint32_t want);

/* Percent of the time in which chains of scan lists are to be timed, if that can be chosen. */
double ebpfMonLevelChoiceFindPercent(const ebpfMonTarget *t, const ebpfMonFilter *filter);

/* Nonzero: its records have slots in the kernel part's tables, or need none. */
int ebpfMonLevelChoiceHasPlace(const ebpfMonTarget *t);

/* What the operator is to know of this IOC. "note" has what attaching had to say; what the operator can do more about
 * replaces it. Empty: nothing. Nonzero: it is a remark, no trouble. */
int ebpfMonLevelChoiceWriteNote(const ebpfMonTarget *t, const ebpfMonFilter *filter, char note[EBPFMON_NOTE_SIZE]);

#endif
