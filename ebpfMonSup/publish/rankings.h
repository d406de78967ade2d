/* SPDX-License-Identifier: BSD-3-Clause */
/* Busiest records, slowest chains, the histogram, and the watched records. Publishing thread only. */
#ifndef EBPFMON_RANKINGS_H
#define EBPFMON_RANKINGS_H

void ebpfMonRankingsUpdateRecords(double seconds); /* since the last call */
void ebpfMonRankingsUpdateChains(void);

#endif
