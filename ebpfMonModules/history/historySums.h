/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums up the puts of a time in one pass. SQLite would sort all of them once for each question of the report, which
 * takes five times as long for a million rows. One thread.
 */
#ifndef EBPFMON_HISTORYSUMS_H
#define EBPFMON_HISTORYSUMS_H

#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#define EBPFMON_HISTORY_STEPS 160 /* into which the time is divided */

typedef struct {
    uint64_t people[EBPFMON_HISTORY_STEPS], automatic[EBPFMON_HISTORY_STEPS]; /* puts; of a run all at its end */
} ebpfMonHistorySums;

/*
 * Adds temporary tables to this connection, about the puts between "from" and "to" (ns since 1970):
 *   people (who, puts, pvs, first, last)     by user@host
 *   changed (pv, before, after, puts)        PVs to which people wrote, and of which the last value is not the one that
 *                                            they had before the first put
 *   links (pv, origin, before, puts)         what IOCs wrote; "before": between "before" and "from". Only if these are
 *                                            10 puts more or fewer
 * 0; -1: "why" says what is wrong.
 */
int ebpfMonHistorySumUp(sqlite3 *db, int64_t before, int64_t from, int64_t to, ebpfMonHistorySums *sums, char *why,
                        size_t size);

#endif
