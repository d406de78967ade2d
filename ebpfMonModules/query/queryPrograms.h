/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's side of one running query: its programs and its tables. They are loaded when the query starts and
 * removed when it ends. One thread at a time may use an instance. The kernel part must be loaded.
 */
#ifndef EBPFMON_QUERYPROGRAMS_H
#define EBPFMON_QUERYPROGRAMS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/ebpfMonQuery.h"
#include "query/perfEvents.h"
#include "probe/uprobe.h"

/* --- an order: what is needed to make the programs and tables of one query --- */

/* At which event a program of the query runs. */
typedef enum {
    ebpfMonQueryAtEntry,     /* the entry of a function, or an offset in it */
    ebpfMonQueryAtReturn,
    ebpfMonQueryCall,        /* a call of a function, from its entry to its return: its duration */
    ebpfMonQueryUsdt,        /* a place that the author of the program marked. This source and those before it are
                              * uprobes */
    ebpfMonQuerySyscall,     /* the begin of a system call */
    ebpfMonQuerySyscallCall, /* a system call, from its begin to its end: its duration */
    ebpfMonQueryProfile,     /* a sample, so many times a second on each CPU */
    ebpfMonQueryEvent,       /* something that the kernel, or the CPU, counts */
    ebpfMonQueryTracepoint,  /* a raw tracepoint */
    ebpfMonQueryCpuWait      /* a thread gets a CPU: how long it waited for it */
} ebpfMonQuerySource;

typedef struct {
    ebpfMonQuerySource source;
    char     tracepoint[64];
    unsigned rate;      /* samples of the profile per second */
    const ebpfMonPerfEvent *event; /* for ebpfMonQueryEvent; the query looks at one of plan.sample events */
    unsigned maxKeys;
    int      needsChains; /* nonzero: it asks for the root, the put or its author: known from level chains on */
    int      needsRecord; /* nonzero: it asks which record the thread processes, so dbProcess() is probed too */
    struct ebpfMonQueryPlan plan;
} ebpfMonQueryOrder;

/* The sizes of its tables. */
typedef struct {
    unsigned key, value;     /* bytes of a key, and of a value in the table "cells" */
    unsigned depth, stride;  /* depth: nested calls of a thread that are kept, a power of two; stride: bytes for one
                              * call */
    unsigned calls;          /* bytes for all calls of a thread */
    unsigned callingThreads; /* threads that can be in a call; 1: the query measures no calls */
    unsigned waits;          /* threads that can wait for a CPU; 1: the query measures no waits */
    unsigned sites;          /* places of USDT probes; 1: the query has none */
    unsigned ring;           /* bytes of the ring */
    size_t   bytes;          /* bytes of all tables, on this host */
} ebpfMonQuerySizes;

/* Calculates the sizes for a query. Any thread. */
void ebpfMonQuerySizesCount(const ebpfMonQueryOrder *order, ebpfMonQuerySizes *sizes);

/* --- its programs --- */

typedef struct ebpfMonQueryPrograms ebpfMonQueryPrograms;

/* Loads what the query needs. "order" is copied. NULL: "why" gets what is wrong. */
ebpfMonQueryPrograms *ebpfMonQueryProgramsLoad(const ebpfMonQueryOrder *order, char *why, size_t size);
/* NULL does no harm. Close the probes before. */
void ebpfMonQueryProgramsFree(ebpfMonQueryPrograms *programs);

/* Nonzero: the stacks of its events lack the functions of the kernel, because this kernel could not give them without
 * harm. */
int ebpfMonQueryProgramsLackKernel(const ebpfMonQueryPrograms *programs);

/* Attaches what is not in an IOC: tracepoints, the profile. 0; or -1, and "why" gets the reason. */
int ebpfMonQueryProgramsAttach(ebpfMonQueryPrograms *programs, char *why, size_t size);

/* Attaches the query's programs to the places. "probe" has room for two for each place; *probes gets their number; the
 * caller closes them. 0; or an error of uprobe.h, and then nothing is attached. */
int ebpfMonQueryProgramsProbe(ebpfMonQueryPrograms *programs, const ebpfMonUprobePlaces *places, ebpfMonProbe *probe,
                              unsigned *probes);

/* The same for dbProcess(), if the query asks which record the thread processes. */
int ebpfMonQueryProgramsProbeRecord(ebpfMonQueryPrograms *programs, const ebpfMonUprobePlaces *places,
                                    ebpfMonProbe *probe, unsigned *probes);

/* Tells the programs where the USDT probe at this address of a process has its arguments. Call it before the probe is
 * attached. RemoveProcess removes it. 0 or errno; E2BIG: there are more than EBPFMON_QUERY_SITES. */
int ebpfMonQueryProgramsAddSite(ebpfMonQueryPrograms *programs, pid_t pid, uint64_t address,
                                const struct ebpfMonQuerySite *site);

/* Events of this process count from now on, or no more. Add: 0 or errno. */
int ebpfMonQueryProgramsAddProcess(ebpfMonQueryPrograms *programs, pid_t pid, const struct ebpfMonQueryChosen *ioc);
void ebpfMonQueryProgramsRemoveProcess(ebpfMonQueryPrograms *programs, pid_t pid);

/* Bytes of a key of ReadCells. */
unsigned ebpfMonQueryProgramsGetKeySize(const ebpfMonQueryPrograms *programs);

/* Calls "each" for each key, with the sum over all CPUs. Without a histogram in the plan, cell->hist does not count.
 * Both pointers are valid during the call only. 0, or -1 with errno: not all keys were read. */
typedef void (*ebpfMonQueryCellFn)(void *arg, const uint8_t *key, const struct ebpfMonQueryCell *cell);
int ebpfMonQueryProgramsReadCells(ebpfMonQueryPrograms *programs, ebpfMonQueryCellFn each, void *arg);

/* Removes a key. "cell" gets what it had; it has room for a histogram. 0, or -1 with errno: there is no such key. Not
 * from "each" of ReadCells. */
int ebpfMonQueryProgramsTakeCell(ebpfMonQueryPrograms *programs, const uint8_t *key, struct ebpfMonQueryCell *cell);

/* Calls "each" for each event that was sent since the last call. If plan.sends asks for no stacks, the event ends
 * before its member "regs". The pointer is valid during the call only. */
typedef void (*ebpfMonQueryEventFn)(void *arg, const struct ebpfMonQueryEvent *event);
void ebpfMonQueryProgramsReadEvents(ebpfMonQueryPrograms *programs, ebpfMonQueryEventFn each, void *arg);

/* What the programs counted of themselves, summed over the CPUs. */
void ebpfMonQueryProgramsReadCounts(ebpfMonQueryPrograms *programs, uint32_t payer, struct ebpfMonQueryCounts *counts);
/* Events for which the kernel did not run the programs (kernelTables.h), of all payers. */
uint64_t ebpfMonQueryProgramsCountSkipped(const ebpfMonQueryPrograms *programs);

#endif
