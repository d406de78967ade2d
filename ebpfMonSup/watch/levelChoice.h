/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which level and which probes are possible for one IOC, and says in words why not more. It attaches nothing,
 * and changes nothing in the target. Only the follower uses it.
 */
#ifndef EBPFMON_LEVELCHOICE_H
#define EBPFMON_LEVELCHOICE_H

#include "model/filter.h"
#include "watch/target.h"

/* The level that is possible: the one that was asked for, or a lower one if budget or state of the IOC do not allow
 * it. */
ebpfMonLevel ebpfMonLevelChoiceFind(const ebpfMonTarget *t);

/* The probes of a level, one bit for each. */
uint32_t ebpfMonLevelChoiceFindProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way);

/* The probes that watch passes of its scan lists. "want": the other probes of its level. 0: its level, its code, or a
 * probe in "want" does not allow it. */
uint32_t ebpfMonLevelChoiceFindSweepProbes(const ebpfMonTarget *t, ebpfMonLevel level, ebpfMonAttachWay way,
                                           uint32_t want);

/* Percent of the time in which chains of scan lists are to be timed, if they can be timed in turns. */
double ebpfMonLevelChoiceFindPercent(const ebpfMonTarget *t, const ebpfMonFilter *filter);

/* Nonzero: its records have slots in the kernel part's tables, or need none. */
int ebpfMonLevelChoiceHasPlace(const ebpfMonTarget *t);

/* Writes what the operator should know about this IOC. "note" comes with the message of attaching; a message about
 * which the operator can do more replaces it. Empty: there is nothing to say. Nonzero: it is a remark and no
 * trouble. */
int ebpfMonLevelChoiceWriteNote(const ebpfMonTarget *t, const ebpfMonFilter *filter, char note[EBPFMON_NOTE_SIZE]);

#endif
