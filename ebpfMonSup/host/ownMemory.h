/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory this process may take yet, by all limits that hold for it. */
#ifndef EBPFMON_OWNMEMORY_H
#define EBPFMON_OWNMEMORY_H

#include <stdint.h>

/* Bytes: the least that its address space (ulimit -v), its control groups (MemoryMax, memory.limit_in_bytes) and the host
 * have left. It reads some small files of /proc and /sys. */
uint64_t ebpfMonOwnMemoryLeft(void);

#endif
