/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What records and the shell may ask of the monitor: tables of functions, one for each subject. So the room record/ does
 * not know the rooms that answer, and can be tested without them.
 *
 * Base calls device support, aSub routines and commands of the shell without a context. They find the monitor by the one
 * pointer of this module; all that the monitor has hangs on it.
 */
#ifndef EBPFMON_OPS_H
#define EBPFMON_OPS_H

#include "model/deviceOps.h"
#include "model/inventoryOps.h"
#include "model/logOps.h"
#include "model/monitorOps.h"
#include "model/queryOps.h"
#include "model/queryValues.h"

typedef struct {
    const ebpfMonMonitorOps   *monitor;
    const ebpfMonLogOps       *logs;
    const ebpfMonQueryOps     *queries;
    const ebpfMonDeviceOps    *devices;
    const ebpfMonInventoryOps *inventories;
    ebpfMonQueryResults       *results; /* what queries found */
    struct ebpfMonRules       *rules;   /* in force (rules/rules.h) */
} ebpfMonOps;

/* Never NULL, nor is a table: before the monitor has registered itself, every operation says so and fails; there are no results
 * and no rules (NULL) then. Any thread. */
const ebpfMonOps *ebpfMonOpsGet(void);

/* Once, before the IOC starts. "ops" must stay, with all that it leads to. */
void ebpfMonOpsSet(const ebpfMonOps *ops);

#endif
