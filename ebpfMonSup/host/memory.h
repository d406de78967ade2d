/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another process' memory, read without stopping it (process_vm_readv). The process goes on writing while
 * we read, so nothing that comes back may be trusted: callers check every pointer, count and string.
 *
 * Small reads of neighbouring addresses (100,000 records) go through a cache of blocks. Flush the cache to read
 * new values. One thread at a time may use a reader.
 *
 * The process decides whether its memory ever arrives, so each read is a job that can be abandoned (host/foreign.h): a
 * read takes 0.25 s at most, and a read of a process that is set aside fails at once. Reads through the cache have a
 * budget, from one flush to the next: 10 s of waiting, 1 GiB, and 2 s of CPU time; bytes and CPU time once more for
 * each 256 MiB of memory that the process has for itself, up to 9 times. A read by a job costs some 10 us more.
 */
#ifndef EBPFMON_MEMORY_H
#define EBPFMON_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* --- our own memory ---
 *
 * How much more memory this process may take, by all limits that apply to it. */

/* Bytes: the smallest of what its address space (ulimit -v), its control groups (MemoryMax, memory.limit_in_bytes) and
 * the host have left. Reads some small files of /proc and /sys. */
uint64_t ebpfMonOwnMemoryLeft(void);

/* --- memory of other processes --- */

typedef struct ebpfMonMem ebpfMonMem;

ebpfMonMem *ebpfMonMemNew(pid_t pid);
void ebpfMonMemFree(ebpfMonMem *mem);
void ebpfMonMemFlush(ebpfMonMem *mem);

/* How long the process has made us wait since New: ns, without the time that we waited for a CPU. Only reads through
 * the cache count. */
uint64_t ebpfMonMemGetWaited(const ebpfMonMem *mem);

/* To read a large database takes seconds. Where the caller allows it, the reader calls "pause" ten times a second,
 * before it reads a block. "pause" must not use this reader. Its CPU time is no part of the budget; GetPaused returns
 * the sum since New (ns). */
void ebpfMonMemSetPause(ebpfMonMem *mem, void (*pause)(void *arg), void *arg);
void ebpfMonMemAllowPause(ebpfMonMem *mem, int allowed);
uint64_t ebpfMonMemGetPaused(const ebpfMonMem *mem);
int ebpfMonMemIsPaused(const ebpfMonMem *mem); /* nonzero: "pause" is being called */

/* Nonzero: the budget is used up, and all reads through the cache fail until the next flush. */
int ebpfMonMemIsOver(const ebpfMonMem *mem);

/* 0: all was read; or -1 (errno: EFAULT no such address, ESRCH gone, EPERM not allowed, ETIMEDOUT it does not answer,
 * EDQUOT the budget is used up). */
int ebpfMonMemRead(ebpfMonMem *mem, uint64_t addr, void *buf, size_t len);
/* The same without the cache, and without a reader object. */
int ebpfMonMemReadNow(pid_t pid, uint64_t addr, void *buf, size_t len);

/* Many small parts in one job and few system calls, without the cache; their bytes stand in "buf" one behind the other.
 * "bytes": the sum of their sizes. As ebpfMonMemReadNow; EFAULT if one of them is not there. */
typedef struct {
    uint64_t addr;
    uint32_t size;
} ebpfMonMemPart;

int ebpfMonMemReadParts(pid_t pid, const ebpfMonMemPart *part, size_t parts, void *buf, size_t bytes);

/* The part of a text that can be read and fits, terminated. Its length, or -1: nothing can be read. Without the
 * cache. */
int ebpfMonMemTextNow(pid_t pid, uint64_t addr, char *buf, size_t size);

/* A pointer; 0 when it cannot be read. */
uint64_t ebpfMonMemPtr(ebpfMonMem *mem, uint64_t addr);

/* The number of 8 bytes, for example a pointer, at an offset in bytes that were read. */
static inline uint64_t ebpfMonMemNumberAt(const char *bytes, unsigned offset)
{
    uint64_t n;

    memcpy(&n, bytes + offset, sizeof(n));
    return n;
}

/* A string of at most size-1 characters with its terminator, or -1: unreadable or longer. */
int ebpfMonMemStr(ebpfMonMem *mem, uint64_t addr, char *buf, size_t size);

#endif
