/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of the rows that people read: the worst first. */
#ifndef EBPFMON_ROWORDER_H
#define EBPFMON_ROWORDER_H

#include "model/healthValues.h"

/*
 * IOCs: by what is nearest to its alarm limit (delays, files, CPU load), those that are not watched last. Scan threads:
 * late ones first, then by load. What differs by less than a factor of two counts as equal and stands by name, so that
 * rows do not jump each second.
 */
void ebpfMonRowOrderSort(ebpfMonHealth *health);

#endif
