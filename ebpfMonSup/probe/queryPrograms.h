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
#include "probe/queryOrder.h"

typedef struct ebpfMonQueryPrograms ebpfMonQueryPrograms;

/* Loads what the query needs. NULL with what is wrong in "why". */
ebpfMonQueryPrograms *ebpfMonQueryProgramsLoad(const ebpfMonQueryOrder *order, char *why, size_t size);
/* NULL does no harm. Close the probes before. */
void ebpfMonQueryProgramsFree(ebpfMonQueryPrograms *programs);

/* Attaches what belongs to the host: tracepoints, the profile. 0, or -1 with "why". */
int ebpfMonQueryProgramsAttach(ebpfMonQueryPrograms *programs, char *why, size_t size);

/* Places in one file that a process has mapped. */
typedef struct {
    const char *path;
    const uint64_t *offset;    /* in the file */
    const uint64_t *semaphore; /* where in the file the kernel counts that the place is looked at; 0: nowhere */
    unsigned count;
    pid_t    pid;
} ebpfMonQueryPlaces;

/* Attaches to places of a process. "probe": room for two at each; *probes: how many there are. 0 or errno; then nothing is
 * attached. */
int ebpfMonQueryProgramsProbe(ebpfMonQueryPrograms *programs, const ebpfMonQueryPlaces *places, ebpfMonProbe *probe,
                              unsigned *probes);

/* The same for dbProcess, if the query asks which record is in hand. */
int ebpfMonQueryProgramsProbeRecord(ebpfMonQueryPrograms *programs, const ebpfMonQueryPlaces *places, ebpfMonProbe *probe,
                                    unsigned *probes);

/* Where a USDT probe at this address of a process has its arguments; to be said before it is attached. Gone with the
 * process. 0 or errno: E2BIG: more than EBPFMON_QUERY_SITES. */
int ebpfMonQueryProgramsAddSite(ebpfMonQueryPrograms *programs, pid_t pid, uint64_t address,
                                const struct ebpfMonQuerySite *site);

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
