/* SPDX-License-Identifier: BSD-3-Clause */
/* The mapped tables of the kernel part that have an element for each slot, and their sizes. kernelLoad.h maps them. */
#ifndef EBPFMON_SLOTTABLES_H
#define EBPFMON_SLOTTABLES_H

#include <stddef.h>
#include <stdint.h>
#include "ebpfMonTable.h"

typedef struct {
    unsigned maxRecords, maxRoots; /* 0: the default of this kernel */
    unsigned ringBytes;            /* power of two */
    unsigned maxClosure;           /* places of the closure table; follows from maxRecords */
} ebpfMonLoadSizes;

/* The tables that have an element for each slot. They are mapped, so the monitor reads a count as it reads memory. The
 * kernel part writes them at any time. Only the part that ebpfMonTablesUse requested is mapped. */
typedef struct {
    volatile struct ebpfMonRecConf  *conf;  /* [maxRecords] */
    volatile struct ebpfMonRecState *state; /* [maxRecords] */
    volatile uint32_t *closure;             /* [maxClosure] */
    ebpfMonLoadSizes size;
    size_t bytes;                           /* memory of the tables that do not grow; of all tables:
                                             * ebpfMonKernelCountMemory */
    int (*use)(uint32_t slots, uint32_t places); /* makes and maps this much; NULL: all of it is there */
} ebpfMonTables;

/* Makes the first "slots" slots, and the first "places" of the closure table usable. 0, or -1 with errno. Follower
 * only. */
static inline int ebpfMonTablesUse(const ebpfMonTables *tables, uint32_t slots, uint32_t places)
{
    return tables->use ? tables->use(slots, places) : 0;
}

#endif
