/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Double entry: each chain is counted with its root, together with the number of records that it processed, and each of
 * these records is counted by itself. Both sums must be the same. Publishing thread only, under the targets lock, once a
 * second: Begin, then AddRoot for each root, then End. The chains go on meanwhile, so only what disagrees for several
 * seconds is reported, and each difference once.
 */
#ifndef EBPFMON_ROOTAUDIT_H
#define EBPFMON_ROOTAUDIT_H

#include "ebpfMonTable.h"
#include "watch/target.h"

void ebpfMonRootAuditBegin(ebpfMonTargets *targets);

/* Also compares the root's own numbers with each other. */
void ebpfMonRootAuditAddRoot(ebpfMonTarget *t, uint32_t index, const struct ebpfMonRootStat *stat);

/* "countSnapshots": as ebpfMonTargetCountSnapshots. "lostRoots": chains that have no root. If there are any nothing can be
 * said. */
void ebpfMonRootAuditEnd(ebpfMonTargets *targets, uint64_t (*countSnapshots)(const ebpfMonTarget *t), uint64_t lostRoots);

#endif
