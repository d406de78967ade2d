/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tables that ebpfMonIocs, ebpfMonRecords, ebpfMonChains and ebpfMonReport print. Each function adds a table to
 * "report" and takes the locks that it needs. It prints nothing itself, so no lock is held while a terminal is slow.
 * Any thread.
 */
#ifndef EBPFMON_LISTS_H
#define EBPFMON_LISTS_H

#include "common/textReport.h"
#include "watch/follower.h"
#include "watch/target.h"

/* The IOCs, with their levels, costs and notes. */
void ebpfMonListsAddIocs(ebpfMonTextReport *report, ebpfMonTargets *targets);

/* The processes that the follower has set aside for a while, with the reason. Adds nothing if there are none. */
void ebpfMonListsAddAside(ebpfMonTextReport *report, ebpfMonFollower *follower);

/* The records of each IOC, with their counts. Patterns: see epicsStrGlobMatch(). */
void ebpfMonListsAddRecords(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *iocPattern,
                            const char *recordPattern);

/* The slowest chains from the published values, if the name of the root matches. */
void ebpfMonListsAddChains(ebpfMonTextReport *report, const char *rootPattern);

/* The resources, waiting times, scan threads and hangs of the IOCs, from the published values. */
void ebpfMonListsAddHealth(ebpfMonTextReport *report);

#endif
