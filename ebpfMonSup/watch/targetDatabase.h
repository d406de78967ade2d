/* SPDX-License-Identifier: BSD-3-Clause */
/* When the database of an IOC is read, and at what cost. The follower's alone. */
#ifndef EBPFMON_TARGETDATABASE_H
#define EBPFMON_TARGETDATABASE_H

#include "watch/recordTables.h"
#include "watch/target.h"

#define EBPFMON_DATABASE_QUICK 20000 /* so many records are read in a fraction of a second */

/* Looks through the database, and reads it if it has changed. The next look is due after a pause of twenty times as
 * long as this one took, or of a tenth of the time since the IOC was found: a database that loads slowly is not read
 * over and over. "most": if there are more records, nothing is read or changed; 0: any number. 0, or -1: it was not
 * read, and "why" may say why. */
int ebpfMonTargetDatabaseLook(ebpfMonTargets *targets, ebpfMonRecordTables *tables, ebpfMonTarget *t, long most,
                              uint64_t now, char why[EBPFMON_NOTE_SIZE]);

#endif
