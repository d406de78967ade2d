/* SPDX-License-Identifier: BSD-3-Clause */
/* From "this group of the published has changed" to processed records, without flooding the callback queue. */
#ifndef EBPFMON_PVSCAN_H
#define EBPFMON_PVSCAN_H

#include <dbScan.h>

#include "model/published.h"

/* Once per iocInit, before record initialisation; and at its end, before the scan lists go. */
void ebpfMonScanInit(void);
void ebpfMonScanStop(void);

/* The scan list of a group, for a record that joins (or leaves) it. */
IOSCANPVT ebpfMonScanList(ebpfMonGroup group, int leaves);

#endif
