/* SPDX-License-Identifier: BSD-3-Clause */
/* When the database of an IOC is read, and at what cost. The follower's alone. */
#ifndef EBPFMON_TARGETDATABASE_H
#define EBPFMON_TARGETDATABASE_H

#include "watch/recordTables.h"
#include "watch/target.h"

/* --- structs without a description ---
 *
 * Whether structs of Base that have no description lie in the memory of an IOC as in a known release: lock sets, scan
 * lists, the CA server. What could not be read counts as unknown, and is looked at again. Only the follower uses this
 * module.
 */

/* Chooses the layout of a database of this IOC: the first one that fits to its records, to the mutex of a lock set and
 * to a client of its CA server, as far as it has them yet. */
void ebpfMonTargetLayoutsChoose(const ebpfMonTarget *t, ebpfMonCatalogue *cat);

/* Chooses its layout, and looks at lock sets and scan lists: sets oddLocks and hasLists. */
void ebpfMonTargetLayoutsRead(ebpfMonTarget *t);

/* Looks at the CA server until that is known, as soon as the IOC has a client; before, nothing of it is used. Nonzero:
 * another layout was chosen, or it is as in no known release, from now on (oddMember). */
int ebpfMonTargetLayoutsLookAtServer(ebpfMonTarget *t);

/* --- when it is read --- */

#define EBPFMON_DATABASE_QUICK 20000 /* so many records are read in a fraction of a second */

/* Looks through the database, and reads it if it has changed. The next look is due after a pause of twenty times as
 * long as this one took, or of a tenth of the time since the IOC was found: a database that loads slowly is not read
 * over and over. "most": if there are more records, nothing is read or changed; 0: any number. 0, or -1: it was not
 * read, and "why" may say why. */
int ebpfMonTargetDatabaseLook(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t, long most,
                              uint64_t now, char why[EBPFMON_NOTE_SIZE]);

#endif
