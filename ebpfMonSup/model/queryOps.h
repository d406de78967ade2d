/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that records and the shell call for queries: one of the tables of ops.h. */
#ifndef EBPFMON_QUERYOPS_H
#define EBPFMON_QUERYOPS_H

#include <stddef.h>
#include "common/textReport.h"

typedef struct {
    void *arg; /* the first argument of each function */
    /* Loads all queries of a file, or none. Queries of the same file that were loaded before are removed. 0 or -1;
     * "text" tells what was done, or what is wrong and where. */
    long (*load)(void *arg, const char *file, char *text, size_t size);
    /* Starts or stops a query soon. 0, or -1: there is no query of this name. */
    long (*run)(void *arg, const char *name, int on);
    void (*addList)(void *arg, ebpfMonTextReport *report);
    /* Adds its rows and its histogram. 0, or -1: there is no query of this name. */
    long (*addResult)(void *arg, ebpfMonTextReport *report, const char *name);
    /* Adds its folded stacks. 0, or -1: there is no query of this name. */
    long (*addStacks)(void *arg, ebpfMonTextReport *report, const char *name);
} ebpfMonQueryOps;

/* Used while there is no monitor: every function fails, and says so if it has a text. */
extern const ebpfMonQueryOps ebpfMonQueryOpsAbsent;

#endif
