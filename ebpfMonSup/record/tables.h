/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables over PV Access. A waveform record with the info tag ebpfMonTable "TABLE POSITION COLUMN" is a column of
 * the table. A record with the info tag "TABLE" has the labels. A table changes after the records of its group have
 * processed, so it does not change more often than they process.
 */
#ifndef EBPFMON_TABLES_H
#define EBPFMON_TABLES_H

#include "model/published.h"

typedef struct ebpfMonTables ebpfMonTables;

/* Without tables. NULL without memory. It stays as long as the process, because a callback may post late. */
ebpfMonTables *ebpfMonTablesNew(void);

/* Finds the tables in the database, and serves them. Call this in the thread of iocInit: after the device support of
 * the records was initialised, and before the servers start. */
void ebpfMonTablesServe(ebpfMonTables *tables);
/* Removes the tables. It waits until a call of ebpfMonTablesPost has ended. */
void ebpfMonTablesRemove(ebpfMonTables *tables);

/* Updates the tables of a group. Any thread, without a lock. */
void ebpfMonTablesPost(ebpfMonTables *tables, ebpfMonGroup group);

#endif
