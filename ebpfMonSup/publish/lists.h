/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ebpfMonIocs, ebpfMonRecords, ebpfMonChains and the health part of ebpfMonReport list. Each function adds a
 * table to "report"; it takes the locks that it needs, and nothing is printed meanwhile. Any thread.
 */
#ifndef EBPFMON_LISTS_H
#define EBPFMON_LISTS_H

#include "common/textReport.h"
#include "watch/follower.h"
#include "watch/target.h"

void ebpfMonListsAddIocs(ebpfMonTextReport *report, ebpfMonTargets *targets);

/* Processes that the follower leaves alone for a while; nothing if there are none. */
void ebpfMonListsAddAside(ebpfMonTextReport *report, ebpfMonFollower *follower);

/* Records with their counts, by IOC. Patterns as in epicsStrGlobMatch. */
void ebpfMonListsAddRecords(ebpfMonTextReport *report, ebpfMonTargets *targets, const char *iocPattern,
                            const char *recordPattern);

/* The slowest chains whose root matches, from the published values. */
void ebpfMonListsAddChains(ebpfMonTextReport *report, const char *rootPattern);

/* Resources, waits, scan threads and hangs of the IOCs, from the published values. */
void ebpfMonListsAddHealth(ebpfMonTextReport *report);

#endif
