/* SPDX-License-Identifier: BSD-3-Clause */
/* How much more memory this process may take, by all limits that apply to it. */
#ifndef EBPFMON_OWNMEMORY_H
#define EBPFMON_OWNMEMORY_H

#include <stdint.h>

/* Bytes: the smallest of what its address space (ulimit -v), its control groups (MemoryMax, memory.limit_in_bytes) and
 * the host have left. Reads some small files of /proc and /sys. */
uint64_t ebpfMonOwnMemoryLeft(void);

#endif
