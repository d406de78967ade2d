/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell can do with inventories: a table of functions, as in monitorOps.h. One per process, because a process
 * has one monitor. */
#ifndef EBPFMON_INVENTORYOPS_H
#define EBPFMON_INVENTORYOPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/inventoryConf.h"
#include "model/opStatus.h"
#include "model/recSyncConf.h"

typedef struct {
    /* Announces the inventory of the IOCs to RecSync servers, or no more. If the monitor does not run yet, it does so
     * from its start on. */
    ebpfMonOpStatus (*setRecSync)(const ebpfMonRecSyncConf *conf);
    /* Keeps the inventory in a file, or no more. If the monitor does not run yet, it does so from its start on. */
    ebpfMonOpStatus (*keep)(const ebpfMonInventoryConf *conf);
    /* Adds the state of the kept inventory to the report. Only while the monitor runs. */
    ebpfMonOpStatus (*addKept)(ebpfMonTextReport *report);
    /* Writes the inventory of the matching IOCs to a file, and adds its contents to the report. Only while the monitor
     * runs. */
    ebpfMonOpStatus (*write)(ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why, size_t size);
    /* Adds the differences of two such files to the report. At any time. */
    ebpfMonOpStatus (*compare)(ebpfMonTextReport *report, const char *before, const char *after, char *why, size_t size);
} ebpfMonInventoryOps;

/* Never NULL: before the monitor has registered its functions, every function fails and says so. Any thread. */
const ebpfMonInventoryOps *ebpfMonInventoryOpsGet(void);
void ebpfMonInventoryOpsRegister(const ebpfMonInventoryOps *ops);

#endif
