/* SPDX-License-Identifier: BSD-3-Clause */
/* The priority of the calling thread, after ebpfMonRealTimeGiveUp (ebpfMon.h). */
#ifndef EBPFMON_OWNPRIORITY_H
#define EBPFMON_OWNPRIORITY_H

/* Takes the usual policy (SCHED_OTHER), and this nice value, for which a thread needs CAP_SYS_NICE or RLIMIT_NICE. It
 * has the capability for this call only. 0; or -1: it has neither, and the value stays. */
int ebpfMonOwnPrioritySet(int nice);

#endif
