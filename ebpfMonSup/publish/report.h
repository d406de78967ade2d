/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of the monitor about itself: ebpfMonReport, dbior drvEbpfMon. Any thread. */
#ifndef EBPFMON_REPORT_H
#define EBPFMON_REPORT_H

#include "common/textReport.h"
#include "model/settings.h"
#include "probe/calibrate.h"
#include "watch/requests.h"
#include "watch/target.h"

/* What the report reads once the monitor runs. */
typedef struct {
    ebpfMonTargets     *targets;
    ebpfMonRequests    *requests;
    const ebpfMonCosts *costs;
} ebpfMonReportSources;

/* What can be said at any time: "life", such as "not started", and sizes. */
void ebpfMonReportAddHead(ebpfMonTextReport *report, const char *life, const ebpfMonSettings *settings);

/* Adds state, filter, costs and losses; from level 1 on the use of tables, rules, IOCs and their health; from level 2
 * on where the probes are. Takes the locks that it needs, and prints nothing. */
void ebpfMonReportAdd(ebpfMonTextReport *report, const ebpfMonReportSources *from, int level);

#endif
