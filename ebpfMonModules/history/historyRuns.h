/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs: automatic puts of one writer to one PV that follow each other become one row with their number, the last value
 * and the smallest and largest number. A link that writes ten times a second is six rows an hour. A put that follows
 * from what a person wrote stays a row, unless the writer has had one within the last fifth of a second. The thread
 * that writes the history only.
 */
#ifndef EBPFMON_HISTORYRUNS_H
#define EBPFMON_HISTORYRUNS_H

#include "history/historyStore.h"

typedef struct ebpfMonHistoryRuns ebpfMonHistoryRuns;

/* Calls write(arg, row) for each run that is over. NULL without memory. */
ebpfMonHistoryRuns *ebpfMonHistoryRunsNew(void (*write)(void *arg, const ebpfMonHistoryRow *row), void *arg);
void ebpfMonHistoryRunsFree(ebpfMonHistoryRuns *runs); /* NULL does no harm. What is open is dropped */

/* A put, of a person or automatic: the chain that began with it follows from what a person wrote, or from "source". */
void ebpfMonHistoryRunsNoteChain(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row);

/* Adds a put; its texts are copied. If there is no memory it is written at once. */
void ebpfMonHistoryRunsAdd(ebpfMonHistoryRuns *runs, const ebpfMonHistoryRow *row);

/* Ends the runs that have gone on, or rested, for long enough ("now": ns since 1970); or all. Returns how many are
 * left. */
unsigned ebpfMonHistoryRunsEnd(ebpfMonHistoryRuns *runs, uint64_t now, int all);

#endif
