/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does the clock of an IOC stand still? The clock of EPICS Base never goes back: if the clock of the host was set back
 * by an hour, the IOC gives each record the last time stamp of before for an hour. Then time stamps do not show who
 * processed.
 */
#ifndef EBPFMON_STUCKCLOCK_H
#define EBPFMON_STUCKCLOCK_H

#include "watch/target.h"

/* Looks at the time stamps that the kernel part noted, of some hundreds of records each time. Nonzero: two records have
 * the same stamp, and it is later than "now" (ns since 1970, UTC). An IOC whose clock only runs ahead has different
 * stamps. *from: the record at which the next look begins. The follower's. */
int ebpfMonStuckClockIsSeen(const ebpfMonTarget *t, uint32_t *from, uint64_t now);

#endif
