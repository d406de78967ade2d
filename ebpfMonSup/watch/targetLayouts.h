/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether structs of Base that have no description lie in the memory of an IOC as in a known release: lock sets, scan
 * lists, the CA server. What could not be read counts as unknown, and is looked at again. Only the follower uses this
 * module.
 */
#ifndef EBPFMON_TARGETLAYOUTS_H
#define EBPFMON_TARGETLAYOUTS_H

#include "watch/target.h"

/* Looks at lock sets and scan lists: sets oddLocks and hasLists. */
void ebpfMonTargetLayoutsRead(ebpfMonTarget *t);

/* Looks at the CA server until that is known, as soon as the IOC has a client; before, nothing of it is used. Nonzero:
 * it is as in no known release, from now on. */
int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t);

#endif
