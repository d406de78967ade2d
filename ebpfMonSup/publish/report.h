/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of the monitor about itself: for ebpfMonReport and "dbior drvEbpfMon". Any thread. */
#ifndef EBPFMON_REPORT_H
#define EBPFMON_REPORT_H

#include "common/textReport.h"
#include "model/ops.h"
#include "probe/calibrate.h"
#include "watch/follower.h"
#include "watch/requests.h"
#include "watch/target.h"

/* --- tables ---
 *
 * The tables that ebpfMonIocs, ebpfMonRecords, ebpfMonChains and ebpfMonReport print. Each function adds a table to
 * "report" and takes the locks that it needs. It prints nothing itself, so no lock is held while a terminal is slow.
 * Any thread.
 */

/* The IOCs, with their levels, costs and notes. */
void ebpfMonListsAddIocs(ebpfMonTextReport *report, ebpfMonTargets *targets);

/* The processes that the follower has set aside for a while, with the reason. Adds nothing if there are none. */
void ebpfMonListsAddAside(ebpfMonTextReport *report, ebpfMonFollower *follower);

/* The records of each IOC, with their counts. Patterns: see epicsStrGlobMatch(). */
void ebpfMonListsAddRecords(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *iocPattern,
                            const char *recordPattern);

/* The slowest chains from the published values, if the name of the root matches. */
void ebpfMonListsAddChains(ebpfMonTextReport *report, const char *rootPattern);

/* --- the report --- */

/* What the report reads while the monitor runs. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonRequests    *requests;
    const ebpfMonCosts *costs;
} ebpfMonReportSources;

/* Adds the part that is known at any time: "life", such as "not started", and the sizes. */
void ebpfMonReportAddHead(ebpfMonTextReport *report, const char *life, const ebpfMonSettings *settings);

/* Adds state, filter, costs and losses. From level 1 on: the use of the tables, the rules, the IOCs and their health.
 * From level 2 on: where the probes are. Takes the locks that it needs, and prints nothing itself. */
void ebpfMonReportAdd(ebpfMonTextReport *report, const ebpfMonReportSources *from, int level);

#endif
