/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of functions that records and the shell call, one table for each subject. The monitor registers them, so the
 * room record/ does not depend on the rooms that do the work, and can be tested without them.
 *
 * Base calls device support, aSub routines and commands of the shell without a context. They find the monitor by the
 * one pointer of this module, which leads to everything that the monitor has.
 */
#ifndef EBPFMON_OPS_H
#define EBPFMON_OPS_H

#include "model/inventoryOps.h"
#include "model/logOps.h"
#include "model/monitorOps.h"
#include "model/queryOps.h"
#include "model/queryValues.h"

typedef struct {
    const ebpfMonMonitorOps   *monitor;
    const ebpfMonLogOps       *logs;
    const ebpfMonQueryOps     *queries;
    const ebpfMonInventoryOps *inventories;
    ebpfMonQueryResults       *results; /* the results of queries */
    struct ebpfMonRules       *rules;   /* the rules that apply now (rules/rules.h) */
} ebpfMonOps;

/* Returns the registered tables. Neither the result nor a table is NULL: before the monitor has registered itself,
 * every function fails and says so, and "results" and "rules" are NULL. Any thread. */
const ebpfMonOps *ebpfMonOpsGet(void);

/* Registers the tables. Call it once, before the IOC starts. "ops", and everything that it leads to, stays the caller's
 * and must never be freed. */
void ebpfMonOpsSet(const ebpfMonOps *ops);

#endif
