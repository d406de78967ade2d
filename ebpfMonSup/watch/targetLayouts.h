/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether structs of Base that have no description lie in the memory of an IOC as in a known release: lock sets, scan
 * lists, the CA server. What could not be read counts as unknown, and is looked at again. Only the follower uses this
 * module.
 */
#ifndef EBPFMON_TARGETLAYOUTS_H
#define EBPFMON_TARGETLAYOUTS_H

#include "watch/target.h"

/* Chooses the layout of a database of this IOC: the first one that fits to its records, to the mutex of a lock set and
 * to a client of its CA server, as far as it has them yet. */
void ebpfMonTargetLayoutsChoose(const ebpfMonTarget *t, ebpfMonCatalogue *cat);

/* Chooses its layout, and looks at lock sets and scan lists: sets oddLocks and hasLists. */
void ebpfMonTargetLayoutsRead(ebpfMonTarget *t);

/* Looks at the CA server until that is known, as soon as the IOC has a client; before, nothing of it is used. Nonzero:
 * another layout was chosen, or it is as in no known release, from now on (oddMember). */
int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t);

#endif
