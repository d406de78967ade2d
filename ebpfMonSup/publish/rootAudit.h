/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A cross-check by double entry. The kernel part counts each chain with its root, with the number of records that the
 * chain processed; and it counts each of these records by itself. Both sums must be the same. Chains go on during the
 * check, so a difference is reported only if it stays for several seconds, and only once.
 *
 * Publishing thread only, under the targets lock, once a second: Begin, AddRoot for each root, End.
 */
#ifndef EBPFMON_ROOTAUDIT_H
#define EBPFMON_ROOTAUDIT_H

#include "ebpfMonTable.h"
#include "model/audits.h"
#include "watch/target.h"

void ebpfMonRootAuditBegin(ebpfMonTargets *targets);

/* Adds a root to the sum of its IOC, and compares the root's own numbers with each other. */
void ebpfMonRootAuditAddRoot(ebpfMonAudits *audits, ebpfMonTarget *t, uint32_t index,
                             const struct ebpfMonRootStat *stat);

/* Compares the sums of each IOC. "countSnapshots": see ebpfMonTargetCountSnapshots. "lostRoots": chains that have no
 * root in the table; if there are any, nothing can be compared. */
void ebpfMonRootAuditEnd(ebpfMonAudits *audits, ebpfMonTargets *targets,
                         uint64_t (*countSnapshots)(const ebpfMonTarget *t), uint64_t lostRoots);

#endif
