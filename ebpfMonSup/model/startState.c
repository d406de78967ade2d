/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include <epicsAtomic.h>

#include "model/startState.h"

enum { notStarted, isStarting, isRunning, hasFailed };

int ebpfMonStartStateIsRunning(const ebpfMonStartState *s)
{
    return epicsAtomicGetIntT(&s->is) == isRunning;
}

ebpfMonStartResult ebpfMonStartStateBegin(ebpfMonStartState *s)
{
    int was = epicsAtomicCmpAndSwapIntT(&s->is, notStarted, isStarting);

    if (was == hasFailed)
        was = epicsAtomicCmpAndSwapIntT(&s->is, hasFailed, isStarting);
    return was == isRunning ? ebpfMonStartDone : was == isStarting ? ebpfMonStartBusy : ebpfMonStartMine;
}

void ebpfMonStartStateEnd(ebpfMonStartState *s, int ok)
{
    epicsAtomicSetIntT(&s->is, ok ? isRunning : hasFailed);
}

int ebpfMonStartStateStop(ebpfMonStartState *s)
{
    return epicsAtomicCmpAndSwapIntT(&s->is, isRunning, notStarted) == isRunning;
}

ebpfMonOpStatus ebpfMonStartStateGetStatus(const ebpfMonStartState *s)
{
    int is = epicsAtomicGetIntT(&s->is);

    return is == isRunning ? ebpfMonOpDone : is == hasFailed ? ebpfMonOpStartFailed : ebpfMonOpNotStarted;
}

int ebpfMonStartStateRefuses(const ebpfMonStartState *s, char *why, size_t size)
{
    int is = epicsAtomicGetIntT(&s->is), isStarted = is == isStarting || is == isRunning;

    if (isStarted)
        snprintf(why, size, "already started; call it before iocInit");
    return isStarted;
}

int ebpfMonStartStateCountFilter(ebpfMonStartState *s, unsigned *count)
{
    int runs = ebpfMonStartStateIsRunning(s);

    *count = (unsigned)(runs ? epicsAtomicIncrIntT(&s->filters) : epicsAtomicGetIntT(&s->filters));
    return runs;
}
