/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands out runs of numbers from 0 … size-1: slots, and places in the closure table. Not locked. */
#ifndef EBPFMON_RANGE_H
#define EBPFMON_RANGE_H

#include <stdint.h>

typedef struct ebpfMonRange ebpfMonRange;

ebpfMonRange *ebpfMonRangeNew(uint32_t size);
void ebpfMonRangeFree(ebpfMonRange *range);

/* First of a run of "count", or UINT32_MAX: none is free. */
uint32_t ebpfMonRangeTake(ebpfMonRange *range, uint32_t count);
void ebpfMonRangeGive(ebpfMonRange *range, uint32_t first, uint32_t count);
uint32_t ebpfMonRangeUsed(const ebpfMonRange *range);

#endif
