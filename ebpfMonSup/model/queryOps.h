/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell can do with queries: a table of functions, as in monitorOps.h. One per process, because a
 * process has one monitor. */
#ifndef EBPFMON_QUERYOPS_H
#define EBPFMON_QUERYOPS_H

#include <stddef.h>
#include "common/textReport.h"

typedef struct {
    /* Loads all queries of a file, or none. Queries of the same file that were loaded before are removed. 0 or -1;
     * "text" tells what was done, or what is wrong and where. */
    long (*load)(const char *file, char *text, size_t size);
    /* Starts or stops a query soon. 0, or -1: there is no query of this name. */
    long (*run)(const char *name, int on);
    void (*addList)(ebpfMonTextReport *report);
    /* Adds its rows and its histogram. 0, or -1: there is no query of this name. */
    long (*addResult)(ebpfMonTextReport *report, const char *name);
    /* Adds its folded stacks. 0, or -1: there is no query of this name. */
    long (*addStacks)(ebpfMonTextReport *report, const char *name);
} ebpfMonQueryOps;

/* Never NULL: before the monitor has registered its functions, every function fails. Any thread. */
const ebpfMonQueryOps *ebpfMonQueryOpsGet(void);
void ebpfMonQueryOpsRegister(const ebpfMonQueryOps *ops);

#endif
