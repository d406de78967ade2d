/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shell may ask of the inventories: one of the tables of ops.h. */
#ifndef EBPFMON_INVENTORYOPS_H
#define EBPFMON_INVENTORYOPS_H

#include <stddef.h>
#include "common/textReport.h"
#include "model/inventoryConf.h"
#include "model/opStatus.h"
#include "model/recSyncConf.h"

typedef struct {
    void *arg; /* the first argument of each function */
    /* Announces the inventory of the IOCs to RecSync servers, or no more. Before the monitor runs it is kept for the start. */
    ebpfMonOpStatus (*setRecSync)(void *arg, const ebpfMonRecSyncConf *conf);
    /* Keeps the inventory in a file, or no more. Before the monitor runs it is kept for the start. */
    ebpfMonOpStatus (*keep)(void *arg, const ebpfMonInventoryConf *conf);
    /* Adds what became of that; while the monitor runs. */
    ebpfMonOpStatus (*addKept)(void *arg, ebpfMonTextReport *report);
    /* Writes the inventory of the IOCs that match to a file, and adds what is in it; while the monitor runs. */
    ebpfMonOpStatus (*write)(void *arg, ebpfMonTextReport *report, const char *path, const char *iocPattern, char *why, size_t size);
    /* Adds what differs between two such files; at any time. */
    ebpfMonOpStatus (*compare)(void *arg, ebpfMonTextReport *report, const char *before, const char *after, char *why, size_t size);
} ebpfMonInventoryOps;

/* Where there is no monitor: every operation fails, and says so where it has a text. */
extern const ebpfMonInventoryOps ebpfMonInventoryOpsAbsent;

#endif
