/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The programs and tables of one running query, of the kernel's side. They are loaded when the query starts and are gone
 * when it ends; nothing is pinned. One thread at a time may use an instance. The kernel part must be loaded.
 */
#ifndef EBPFMON_QUERYPROGRAMS_H
#define EBPFMON_QUERYPROGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonQuery.h"
#include "probe/closer.h"

/* What happens when a program of the query runs. */
typedef enum {
    ebpfMonQueryAtEntry,     /* of a function, or at an offset in it */
    ebpfMonQueryAtReturn,
    ebpfMonQueryCall,        /* from the entry to the return: its duration */
    ebpfMonQuerySyscall,     /* a system call begins */
    ebpfMonQuerySyscallCall, /* … its duration */
    ebpfMonQueryProfile,     /* so many times a second on each CPU */
    ebpfMonQueryTracepoint,  /* a raw tracepoint */
    ebpfMonQueryCpuWait      /* a thread waited for a CPU, and has it now */
} ebpfMonQuerySource;

typedef struct {
    ebpfMonQuerySource source;
    char     tracepoint[64];
    unsigned rate;      /* of the profile, a second */
    unsigned maxKeys;
    int      needsRecord; /* it asks which record is in hand: dbProcess is probed, too */
    struct ebpfMonQueryPlan plan;
} ebpfMonQueryOrder;

typedef struct ebpfMonQueryPrograms ebpfMonQueryPrograms;

/* Loads what the query needs. NULL with what is wrong in "why". */
ebpfMonQueryPrograms *ebpfMonQueryProgramsLoad(const ebpfMonQueryOrder *order, char *why, size_t size);
/* NULL does no harm. Close the probes before. */
void ebpfMonQueryProgramsFree(ebpfMonQueryPrograms *programs);

/* Attaches what belongs to the host: tracepoints, the profile. 0, or -1 with "why". */
int ebpfMonQueryProgramsAttach(ebpfMonQueryPrograms *programs, char *why, size_t size);

/* Attaches to functions of a process, in one file. "probe": room for two at each offset; *probes: how many there are. 0 or
 * errno; then nothing is attached. */
int ebpfMonQueryProgramsProbe(ebpfMonQueryPrograms *programs, const char *path, const uint64_t *offsets, unsigned count,
                              pid_t pid, ebpfMonProbe *probe, unsigned *probes);

/* The same for dbProcess, if the query asks which record is in hand. */
int ebpfMonQueryProgramsProbeRecord(ebpfMonQueryPrograms *programs, const char *path, const uint64_t *offsets, unsigned count,
                                    pid_t pid, ebpfMonProbe *probe, unsigned *probes);

/* Events of this process count from now on; or no more. 0 or errno. */
int ebpfMonQueryProgramsAddProcess(ebpfMonQueryPrograms *programs, pid_t pid, uint32_t iocId);
void ebpfMonQueryProgramsRemoveProcess(ebpfMonQueryPrograms *programs, pid_t pid);

unsigned ebpfMonQueryProgramsGetKeySize(const ebpfMonQueryPrograms *programs);

/* Calls "each" for each key with the sum over all CPUs: a cell that is the same struct without "hist" if there is none.
 * 0, or -1 with errno: not all were read. */
typedef void (*ebpfMonQueryCellFn)(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell);
int ebpfMonQueryProgramsReadCells(ebpfMonQueryPrograms *programs, ebpfMonQueryCellFn each, void *arg);

/* Calls "each" for each event that was sent since the last call: with stacks as plan.sends says, else up to "regs". */
typedef void (*ebpfMonQueryEventFn)(void *arg, const struct ebpfMonQueryEvent *event);
void ebpfMonQueryProgramsReadEvents(ebpfMonQueryPrograms *programs, ebpfMonQueryEventFn each, void *arg);

void ebpfMonQueryProgramsReadCounts(ebpfMonQueryPrograms *programs, struct ebpfMonQueryCounts *counts);

#endif
