/* SPDX-License-Identifier: BSD-3-Clause */
/* Published values: the inventory that a RecSync server has of the watched IOCs. */
#ifndef EBPFMON_INVENTORYVALUES_H
#define EBPFMON_INVENTORYVALUES_H

#include "model/exportValues.h"

#define EBPFMON_NO_RECSYNC "nothing is announced: ebpfMonRecSync begins it"

typedef struct {
    ebpfMonLogState state;
    char     message[256];
    unsigned iocs;           /* IOCs that the server knows with all records */
    unsigned records;        /* records of these IOCs */
} ebpfMonRecSyncValues;

#endif
