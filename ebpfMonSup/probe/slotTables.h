/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the kernel part that are found by slot, as they are mapped, and how large they are. kernelLoad.h maps them. */
#ifndef EBPFMON_SLOTTABLES_H
#define EBPFMON_SLOTTABLES_H

#include <stddef.h>
#include <stdint.h>
#include "ebpfMonTable.h"

typedef struct {
    unsigned maxRecords, maxClosure, maxRoots;
    unsigned ringBytes; /* power of two */
} ebpfMonLoadSizes;

/* The tables that are found by slot: reading a count is a memory read. The kernel part writes them at any time. What
 * nobody has asked to use (ebpfMonTablesUse) is not mapped. */
typedef struct {
    volatile struct ebpfMonRecConf  *conf;  /* [maxRecords] */
    volatile struct ebpfMonRecState *state; /* [maxRecords] */
    volatile uint32_t *closure;             /* [maxClosure] */
    ebpfMonLoadSizes size;
    size_t bytes;                           /* memory of those that do not grow; all: ebpfMonKernelCountMemory */
    int (*use)(uint32_t slots, uint32_t places); /* NULL: all is mapped */
} ebpfMonTables;

/* Makes the first "slots" of the tables by slot and the first "places" of the closure table usable. 0, or -1 with errno.
 * Follower. */
static inline int ebpfMonTablesUse(const ebpfMonTables *tables, uint32_t slots, uint32_t places)
{
    return tables->use ? tables->use(slots, places) : 0;
}

#endif
