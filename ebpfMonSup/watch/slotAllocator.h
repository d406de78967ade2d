/* SPDX-License-Identifier: BSD-3-Clause */
/* Hands out runs of numbers from 0 to size - 1: slots, and places in the closure table. Not locked: one thread. */
#ifndef EBPFMON_SLOTALLOCATOR_H
#define EBPFMON_SLOTALLOCATOR_H

#include <stdint.h>

typedef struct ebpfMonSlotAllocator ebpfMonSlotAllocator;

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size); /* NULL without memory */
void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *slots);   /* NULL does no harm */

/* The first number of a run of "count"; it is the first run that is free. UINT32_MAX: none is. */
uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *slots, uint32_t count);

/* Makes a run free again, as it was taken; another one changes nothing. */
void ebpfMonSlotAllocatorReturn(ebpfMonSlotAllocator *slots, uint32_t first, uint32_t count);

/* How many numbers are taken. */
uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *slots);

#endif
