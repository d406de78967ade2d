/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables over PV Access. A waveform record with the info tag ebpfMonTable "TABLE POSITION COLUMN" is a column of
 * the table, one with "TABLE" has its labels. Tables change when the records of their group have processed, so at their
 * pace.
 */
#ifndef EBPFMON_TABLES_H
#define EBPFMON_TABLES_H

#include "model/published.h"

/* Finds the tables in the database, and serves them. After the device support of the records was initialised, before
 * the servers start. */
void ebpfMonTablesStart(void);
/* Ends that. No ebpfMonTablesPost is under way afterwards. */
void ebpfMonTablesStop(void);

/* The group changed. Any thread that may hold no lock. */
void ebpfMonTablesPost(ebpfMonGroup group);

#endif
