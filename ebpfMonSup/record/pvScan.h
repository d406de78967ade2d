/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes the records of a group of published values when one of them changes, without flooding the callback queue.
 * One per process, as the scan lists of Base are.
 */
#ifndef EBPFMON_PVSCAN_H
#define EBPFMON_PVSCAN_H

#include <dbScan.h>

#include "model/published.h"

/* The thread of iocInit calls these. Init: before Base initialises the records. "shown" is called in a callback thread,
 * without a lock, when all records of a group have processed. Stop: before Base frees the scan lists. */
void ebpfMonScanInit(void (*shown)(ebpfMonGroup group));
void ebpfMonScanStop(void);

/* The scan list of a group; Base owns it. Call it once for a record that joins the list, and once when it leaves.
 * Any thread. */
IOSCANPVT ebpfMonScanList(ebpfMonGroup group, int leaves);

#endif
