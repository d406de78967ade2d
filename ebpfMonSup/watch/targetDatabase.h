/* SPDX-License-Identifier: BSD-3-Clause */
/* When the database of an IOC is read, and at what cost. The follower's alone. */
#ifndef EBPFMON_TARGETDATABASE_H
#define EBPFMON_TARGETDATABASE_H

#include "watch/recordTables.h"
#include "watch/target.h"

/* --- a place for an IOC ---
 *
 * Decides which IOCs are watched when there are more IOCs than places. Any process can have the symbols of an IOC, so
 * false IOCs of one user must not take the places of real IOCs. Only the follower uses this module. */

/* Finds a place for one more IOC: process "pid", for which "user" pays (host/procRead.h). *victim: the IOC that loses
 * its place, NULL: none. The victim belongs to the user who has most IOCs, but not to a system user while another one
 * has any. If that is "user" itself, the victim must be one that may not be an IOC, and the new process must listen for
 * clients. First goes an IOC whose database was not read, then one that does not listen, then the youngest. 0, or -1:
 * there is no place. */
int ebpfMonTargetPlaceFind(ebpfMonTargets *targets, pid_t pid, uid_t user, ebpfMonTarget **victim);

/* Finds out which targets listen for clients, of those that may not be IOCs. Looks at each now and then, until its
 * database was read. */
void ebpfMonTargetPlaceFindListening(ebpfMonTargets *targets, uint64_t now);

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
