/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the rows that people read: the worst first. */
#ifndef EBPFMON_ROWORDER_H
#define EBPFMON_ROWORDER_H

#include "model/healthValues.h"

/*
 * IOCs: by the value that is nearest to its alarm limit (delays, files, CPU load); IOCs that are not watched come last. Scan
 * threads: late ones first, then by load. Values that differ by less than a factor of two count as equal, and their rows are
 * sorted by name, so that rows do not change places each second.
 */
void ebpfMonRowOrderSort(ebpfMonHealth *health);

#endif
