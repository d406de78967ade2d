/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the rows that people read: the worst first. */
#ifndef EBPFMON_ROWORDER_H
#define EBPFMON_ROWORDER_H

#include "model/healthValues.h"

/*
 * Sorts health->ioc and health->scan. IOCs: by the value that is nearest to its alarm limit (delays, files, CPU load);
 * IOCs that are not watched come last. Scan threads: the late ones first, then by load. Rows must not change places
 * each second. So values are compared by their power of two, and rows with equal ones are sorted by name. No lock; the
 * thread that owns "health".
 */
void ebpfMonRowOrderSort(ebpfMonHealth *health);

#endif
