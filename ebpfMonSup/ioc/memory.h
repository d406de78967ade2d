/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another process' memory, read without stopping it (process_vm_readv). The process goes on writing while
 * we read, so nothing that comes back may be trusted: callers check every pointer, count and string.
 *
 * Small reads of neighbouring addresses (100,000 records) go through a cache of blocks; flush it to see
 * the present again. One thread at a time per reader.
 */
#ifndef EBPFMON_MEMORY_H
#define EBPFMON_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ebpfMonMem ebpfMonMem;

ebpfMonMem *ebpfMonMemNew(pid_t pid);
void ebpfMonMemFree(ebpfMonMem *mem);
void ebpfMonMemFlush(ebpfMonMem *mem);

/* All of it or -1 (errno: EFAULT no such address, ESRCH gone, EPERM not allowed). */
int ebpfMonMemRead(ebpfMonMem *mem, uint64_t addr, void *buf, size_t len);
/* The same past the cache, and without a reader. */
int ebpfMonMemReadNow(pid_t pid, uint64_t addr, void *buf, size_t len);

/* A text as far as it can be read and has room, terminated. Its length, or -1: nothing can be read. Past the cache. */
int ebpfMonMemTextNow(pid_t pid, uint64_t addr, char *buf, size_t size);

/* A pointer; 0 when it cannot be read. */
uint64_t ebpfMonMemPtr(ebpfMonMem *mem, uint64_t addr);

/* A string of at most size-1 characters with its terminator, or -1: unreadable or longer. */
int ebpfMonMemStr(ebpfMonMem *mem, uint64_t addr, char *buf, size_t size);

#endif
