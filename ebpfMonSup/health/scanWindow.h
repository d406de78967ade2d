/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes the mean period of one scan thread over the last seconds, from the counts of the kernel part. No shared
 * state; the structs are the caller's. */
#ifndef EBPFMON_SCANWINDOW_H
#define EBPFMON_SCANWINDOW_H

#include <stdint.h>
#include "model/healthValues.h"

#define EBPFMON_SCAN_SECONDS 10 /* the mean is taken over this time */
#define EBPFMON_SCAN_FAR     2  /* a real period of more than so many nominal ones is far too long */

/* The counts of one thread since the kernel part first saw it; times in ns. The members are those of struct ebpfMonScan
 * (ebpfMonTable.h). */
typedef struct {
    uint64_t passes, sum, max, busy, late;
} ebpfMonScanSample;

/* The samples of the last seconds, a ring. All 0: there is none yet. */
typedef struct {
    ebpfMonScanSample at[EBPFMON_SCAN_SECONDS + 1];
    unsigned n, newest;
} ebpfMonScanWindow;

/* Call this once a second. Sets row->period, worst (s), late (a count) and busy (percent). If no pass ended in the
 * window, the mean stays as it is. "present": the time since the present period began (ns); it counts if it is
 * longer. 0: ignore it. */
void ebpfMonScanWindowAdd(ebpfMonScanWindow *window, const ebpfMonScanSample *now, uint64_t present,
                          ebpfMonScanRow *row);

/* The period (s) of a choice of menuScan (".1 second", "10 Hz"), by the rules of initPeriodic in dbScan.c; 0: it has no
 * period. */
double ebpfMonScanParsePeriod(const char *choice);

#endif
