/* SPDX-License-Identifier: BSD-3-Clause */
/* Busiest records, slowest chains, the histogram, and the watched records. Publishing thread only. */
#ifndef EBPFMON_RANK_H
#define EBPFMON_RANK_H

void ebpfMonRankRecords(double seconds); /* since the last call */
void ebpfMonRankChains(void);

#endif
