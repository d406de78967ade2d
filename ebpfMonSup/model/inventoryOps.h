/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that the shell calls for inventories: one of the tables of ops.h. */
#ifndef EBPFMON_INVENTORYOPS_H
#define EBPFMON_INVENTORYOPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/inventoryConf.h"
#include "model/opStatus.h"
#include "model/recSyncConf.h"

typedef struct {
    void *arg; /* the first argument of each function */
    /* Announces the inventory of the IOCs to RecSync servers, or no more. If the monitor does not run yet, it does so
     * from its start on. */
    ebpfMonOpStatus (*setRecSync)(void *arg, const ebpfMonRecSyncConf *conf);
    /* Keeps the inventory in a file, or no more. If the monitor does not run yet, it does so from its start on. */
    ebpfMonOpStatus (*keep)(void *arg, const ebpfMonInventoryConf *conf);
    /* Adds the state of the kept inventory to the report. Only while the monitor runs. */
    ebpfMonOpStatus (*addKept)(void *arg, ebpfMonTextReport *report);
    /* Writes the inventory of the matching IOCs to a file, and adds its contents to the report. Only while the monitor
     * runs. */
    ebpfMonOpStatus (*write)(void *arg, ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why,
                             size_t size);
    /* Adds the differences of two such files to the report, those of the matching IOCs. At any time. */
    ebpfMonOpStatus (*compare)(void *arg, ebpfMonTextReport *report, const char *before, const char *after,
                               const char *iocPattern, char *why, size_t size);
} ebpfMonInventoryOps;

/* Used while there is no monitor: every function fails, and says so if it has a text. */
extern const ebpfMonInventoryOps ebpfMonInventoryOpsAbsent;

#endif
