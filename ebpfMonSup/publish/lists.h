/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that ebpfMonIocs, ebpfMonRecords, ebpfMonChains and ebpfMonReport print. Each function adds to "report",
 * and takes the locks that it needs. It prints nothing itself, so no lock is held while a terminal is slow. Any thread.
 */
#ifndef EBPFMON_LISTS_H
#define EBPFMON_LISTS_H

#include "common/textReport.h"
#include "probe/calibrate.h"
#include "watch/follower.h"
#include "watch/requests.h"
#include "watch/target.h"

/* The IOCs, with their levels, costs and notes; and the processes that the follower has set aside for a while. */
void ebpfMonListsAddIocs(ebpfMonTextReport *report, ebpfMonTargets *targets, ebpfMonFollower *follower);

/* The records of each IOC, with their counts. Patterns: see epicsStrGlobMatch(). */
void ebpfMonListsAddRecords(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *iocPattern,
                            const char *recordPattern);

/* The slowest chains from the published values, if the name of the root matches. */
void ebpfMonListsAddChains(ebpfMonTextReport *report, const char *rootPattern);

/* The report of the monitor about itself: state, filter, costs and losses. From level 1 on: the use of the tables, the
 * rules, the IOCs and their health. From level 2 on: where the probes are. */
void ebpfMonListsAddReport(ebpfMonTextReport *report, ebpfMonTargets *targets, ebpfMonRequests *requests,
                           const ebpfMonCosts *costs, int level);

#endif
