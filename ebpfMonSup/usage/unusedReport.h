/* SPDX-License-Identifier: BSD-3-Clause */
/* Which records nobody has used for some days, and how far that can be known. */
#ifndef EBPFMON_UNUSEDREPORT_H
#define EBPFMON_UNUSEDREPORT_H

#include "common/textReport.h"
#include "usage/clientTable.h"
#include "usage/useStore.h"

/* Of the IOCs that are watched now, the records that match "pattern" and were not used in the last "days". 0, or -1: "why"
 * the file cannot be read. It takes the locks of table and targets. Any thread. */
int ebpfMonUnusedReportAdd(ebpfMonTextReport *report, ebpfMonClientTable *table, ebpfMonTargets *targets,
                           ebpfMonUseStore *store, double days, const char *pattern, char *why, size_t size);

#endif
