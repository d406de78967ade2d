/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The histograms of roots. Records in scan lists get one here. The kernel part gives one to another record when it is a
 * root for the first time; this module makes the room. Histograms are in our memory, so to read them takes no system
 * call. While a kernel part is loaded (kernelLoad.h).
 */
#ifndef EBPFMON_KERNELROOTS_H
#define EBPFMON_KERNELROOTS_H

#include <stdint.h>
#include "ebpfMonTable.h"

/* Gives the record with this slot a histogram. Returns its number; 0: there is no room. Follower only. */
uint32_t ebpfMonKernelTakeRoot(uint32_t slot);

/* Makes room for roots that nobody expects: other records that a put processes for the first time. If there are too
 * many of them at once, if the kernel gives no memory, or if the table has its greatest size, their chains are counted
 * as lost. Once a second. Follower only. */
void ebpfMonKernelReserveRoots(void);

/* Removes the histograms of "count" slots from "first" on, when no program uses these slots any more. Follower only. */
void ebpfMonKernelRemoveRoots(uint32_t first, uint32_t count);

/* Roots that have a histogram. Any thread. */
uint32_t ebpfMonKernelCountRoots(void);

/* Calls "each" for every root to which something was added, with a copy. Any thread. */
void ebpfMonKernelEachRoot(void (*each)(void *arg, uint32_t slot, const struct ebpfMonRootStat *stat), void *arg);

#endif
