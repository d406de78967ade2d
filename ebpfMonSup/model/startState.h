/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the monitor runs: several threads may ask to start it, configure it, or use it, at the same time. One of them
 * starts it; the others are told. Any thread may call these functions; they wait for nothing.
 */
#ifndef EBPFMON_STARTSTATE_H
#define EBPFMON_STARTSTATE_H

#include <stddef.h>
#include "model/ops.h"

/* All 0: it does not run. Only the functions use the members, which are atomic. */
typedef struct {
    int is, filters;
} ebpfMonStartState;

typedef enum { ebpfMonStartMine, ebpfMonStartDone, ebpfMonStartBusy } ebpfMonStartResult;

/* Asks to start. ebpfMonStartMine: the caller starts it now, and then calls End, "ok" nonzero: it runs.
 * ebpfMonStartDone: it runs already. ebpfMonStartBusy: another thread is starting it. */
ebpfMonStartResult ebpfMonStartStateBegin(ebpfMonStartState *state);
void ebpfMonStartStateEnd(ebpfMonStartState *state, int ok);

/* It stops now. Nonzero: it ran. So only the first of several callers stops it. */
int ebpfMonStartStateStop(ebpfMonStartState *state);

/* Nonzero: it runs. */
int ebpfMonStartStateIsRunning(const ebpfMonStartState *state);

/* ebpfMonOpDone: it runs; else why not. */
ebpfMonOpStatus ebpfMonStartStateGetStatus(const ebpfMonStartState *state);

/* Nonzero: it runs or is being started, so it cannot be configured any more; "why" tells so. */
int ebpfMonStartStateRefuses(const ebpfMonStartState *state, char *why, size_t size);

/* Counts a filter if it runs, which is the result. *count: the filters that were applied since the first start. */
int ebpfMonStartStateCountFilter(ebpfMonStartState *state, unsigned *count);

#endif
