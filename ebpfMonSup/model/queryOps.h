/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the queries: a table of functions, as monitorOps.h. One per process, because a
 * process has one monitor. */
#ifndef EBPFMON_QUERYOPS_H
#define EBPFMON_QUERYOPS_H

#include <stddef.h>
#include "common/textReport.h"

typedef struct {
    /* Loads the queries of a file, all of them or none. Those of the same file that were loaded before go. 0, or -1; "text"
     * says what was done, or what is wrong and where. */
    long (*load)(const char *file, char *text, size_t size);
    /* Starts a query, or stops it, soon. 0, or -1: there is none of that name. */
    long (*run)(const char *name, int on);
    void (*addList)(ebpfMonTextReport *report);
    /* Its rows and its histogram. 0, or -1: there is none of that name. */
    long (*addResult)(ebpfMonTextReport *report, const char *name);
    /* Its stacks, folded. 0, or -1: there is none of that name. */
    long (*addStacks)(ebpfMonTextReport *report, const char *name);
} ebpfMonQueryOps;

/* Never NULL: before the monitor has registered, every operation fails. Any thread. */
const ebpfMonQueryOps *ebpfMonQueryOpsGet(void);
void ebpfMonQueryOpsRegister(const ebpfMonQueryOps *ops);

#endif
