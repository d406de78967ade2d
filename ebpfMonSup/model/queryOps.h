/* SPDX-License-Identifier: BSD-3-Clause */
/* What records and the shell may ask of the queries: one of the tables of ops.h. */
#ifndef EBPFMON_QUERYOPS_H
#define EBPFMON_QUERYOPS_H

#include <stddef.h>
#include "common/textReport.h"

typedef struct {
    void *arg; /* the first argument of each function */
    /* Loads the queries of a file, all of them or none. Those of the same file that were loaded before go. 0, or -1; "text"
     * says what was done, or what is wrong and where. */
    long (*load)(void *arg, const char *file, char *text, size_t size);
    /* Starts a query, or stops it, soon. 0, or -1: there is none of that name. */
    long (*run)(void *arg, const char *name, int on);
    void (*addList)(void *arg, ebpfMonTextReport *report);
    /* Its rows and its histogram. 0, or -1: there is none of that name. */
    long (*addResult)(void *arg, ebpfMonTextReport *report, const char *name);
    /* Its stacks, folded. 0, or -1: there is none of that name. */
    long (*addStacks)(void *arg, ebpfMonTextReport *report, const char *name);
} ebpfMonQueryOps;

/* Where there is no monitor: every operation fails, and says so where it has a text. */
extern const ebpfMonQueryOps ebpfMonQueryOpsAbsent;

#endif
