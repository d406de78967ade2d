/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell may ask of the inventories: a table of functions, as monitorOps.h. One per process, because a process has
 * one monitor. */
#ifndef EBPFMON_INVENTORYOPS_H
#define EBPFMON_INVENTORYOPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/inventoryConf.h"
#include "model/opStatus.h"
#include "model/recSyncConf.h"

typedef struct {
    /* Announces the inventory of the IOCs to RecSync servers, or no more. Before the monitor runs it is kept for the start. */
    ebpfMonOpStatus (*setRecSync)(const ebpfMonRecSyncConf *conf);
    /* Keeps the inventory in a file, or no more. Before the monitor runs it is kept for the start. */
    ebpfMonOpStatus (*keep)(const ebpfMonInventoryConf *conf);
    /* Adds what became of that; while the monitor runs. */
    ebpfMonOpStatus (*addKept)(ebpfMonTextReport *report);
    /* Writes the inventory of the IOCs that match to a file, and adds what is in it; while the monitor runs. */
    ebpfMonOpStatus (*write)(ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why, size_t size);
    /* Adds what differs between two such files; at any time. */
    ebpfMonOpStatus (*compare)(ebpfMonTextReport *report, const char *before, const char *after, char *why, size_t size);
} ebpfMonInventoryOps;

/* Never NULL: before the monitor has registered, every operation says so and fails. Any thread. */
const ebpfMonInventoryOps *ebpfMonInventoryOpsGet(void);
void ebpfMonInventoryOpsRegister(const ebpfMonInventoryOps *ops);

#endif
