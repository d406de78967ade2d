/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates ranges of numbers from 0 to size - 1: slots, and places in the closure table. No lock: one thread. */
#ifndef EBPFMON_SLOTALLOCATOR_H
#define EBPFMON_SLOTALLOCATOR_H

#include <stdint.h>

typedef struct ebpfMonSlotAllocator ebpfMonSlotAllocator;

ebpfMonSlotAllocator *ebpfMonSlotAllocatorNew(uint32_t size); /* NULL without memory */
void ebpfMonSlotAllocatorFree(ebpfMonSlotAllocator *slots);   /* NULL does no harm */

/* Allocates the first free range of "count" numbers. Returns its first number; UINT32_MAX: there is none. */
uint32_t ebpfMonSlotAllocatorTake(ebpfMonSlotAllocator *slots, uint32_t count);

/* Frees a range that was allocated; any other range changes nothing. */
void ebpfMonSlotAllocatorReturn(ebpfMonSlotAllocator *slots, uint32_t first, uint32_t count);

/* How many numbers are taken. */
uint32_t ebpfMonSlotAllocatorCountUsed(const ebpfMonSlotAllocator *slots);

#endif
