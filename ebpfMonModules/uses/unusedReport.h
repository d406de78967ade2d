/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports which records nobody has used for some days, and how well the monitor knows this. */
#ifndef EBPFMON_UNUSEDREPORT_H
#define EBPFMON_UNUSEDREPORT_H

#include "common/textReport.h"
#include "clients/clientTable.h"
#include "uses/useStore.h"

/* Adds the records of all watched IOCs that match "pattern" and were not used in the last "days". 0, or -1: the file
 * cannot be read, and "why" says why. Takes the locks of table and targets. Any thread; "store" is the caller's, and
 * only this thread uses it. */
int ebpfMonUnusedReportAdd(ebpfMonTextReport *report, ebpfMonClientTable *table, ebpfMonTargets *targets,
                           ebpfMonUseStore *store, double days, const char *pattern, char *why, size_t size);

#endif
