/* SPDX-License-Identifier: BSD-3-Clause */
/* The mean period of one scan thread over the last seconds, from what the kernel part counts. No shared state. */
#ifndef EBPFMON_SCANWINDOW_H
#define EBPFMON_SCANWINDOW_H

#include <stdint.h>
#include "model/healthValues.h"

#define EBPFMON_SCAN_SECONDS 10 /* the mean is taken over this time */

/* What was counted of one thread so far; times in ns. As in struct ebpfMonScan of ebpfMonTable.h. */
typedef struct {
    uint64_t passes, sum, max, busy, late;
} ebpfMonScanSample;

/* The samples of the last seconds. All 0: none yet. */
typedef struct {
    ebpfMonScanSample at[EBPFMON_SCAN_SECONDS + 1];
    unsigned n, newest;
} ebpfMonScanWindow;

/* Once a second. Sets period, worst, late and busy of "row". If no pass was counted in the window, the period stays
 * as it is. "present": how long the period under way takes already (ns); 0: do not look at it. */
void ebpfMonScanWindowAdd(ebpfMonScanWindow *window, const ebpfMonScanSample *now, uint64_t present,
                          ebpfMonScanRow *row);

/* The period (s) that a choice of menuScan means, by the rules of dbScan.c (initPeriodic); 0: none. */
double ebpfMonScanParsePeriod(const char *choice);

#endif
