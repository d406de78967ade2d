/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands out runs of numbers from 0 … size-1: slots, and places in the closure table. Not locked. */
#ifndef EBPFMON_SLOTALLOCATOR_H
#define EBPFMON_SLOTALLOCATOR_H

#include <stdint.h>

typedef struct ebpfMonSlotAllocator ebpfMonSlotAllocator;

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size);
void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *range);

/* First of a run of "count", or UINT32_MAX: none is free. */
uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *range, uint32_t count);
void ebpfMonSlotAllocatorGive(ebpfMonSlotAllocator *range, uint32_t first, uint32_t count);
uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *range);

#endif
