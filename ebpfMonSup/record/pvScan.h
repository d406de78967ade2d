/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes the records of a group of published values when one of these values changes, but not more often than the
 * callback queue can bear. One per process, as the scan lists of Base.
 */
#ifndef EBPFMON_PVSCAN_H
#define EBPFMON_PVSCAN_H

#include <dbScan.h>

#include "model/published.h"

/* The thread of iocInit calls both. Call Init before Base initialises the records. shown(group) is called in a
 * callback thread, without a lock, when all records of a group have processed; as often as rows process at most. Call
 * Stop before Base frees the scan lists. */
void ebpfMonScanInit(void (*shown)(ebpfMonGroup group));
void ebpfMonScanStop(void);

/* Returns a scan list of a group; Base owns it. "isRows": nonzero for a record that shows rows. Such records process
 * after the others, and four times a second at most. Call this once for each record that joins the list, and once with
 * "leaves" when it leaves. Any thread. */
IOSCANPVT ebpfMonScanList(ebpfMonGroup group, int isRows, int leaves);

#endif
