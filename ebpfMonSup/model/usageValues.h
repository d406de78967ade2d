/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the database of uses. */
#ifndef EBPFMON_USAGEVALUES_H
#define EBPFMON_USAGEVALUES_H

#include <stdint.h>

#include "model/exportValues.h"

#define EBPFMON_NO_USAGE "uses are not kept: ebpfMonUsage begins it"

/* The thread that keeps uses writes them (usage/useKeeper.h). */
typedef struct {
    ebpfMonLogState state;
    char     message[256];
    int64_t  rows;       /* uses in the file: each is a PV with a kind of use */
    uint64_t lost;       /* uses for which there was no room in memory */
} ebpfMonUsageValues;

#endif
