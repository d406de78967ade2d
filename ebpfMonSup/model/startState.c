/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include <epicsAtomic.h>
#include <epicsMutex.h>

#include "model/startState.h"

struct ebpfMonStartState {
    epicsMutexId lock;
    /* under the lock */
    int          isStarting, hasFailed; /* a start is under way; the last one failed */
    unsigned     filters;
    /* written under the lock; atomic, because records ask for it without the lock */
    int          isRunning;
};

ebpfMonStartState *ebpfMonStartStateNew(void)
{
    ebpfMonStartState *s = calloc(1, sizeof(*s));

    if (s)
        s->lock = epicsMutexCreate();
    if (s && s->lock)
        return s;
    free(s);
    return NULL;
}

void ebpfMonStartStateFree(ebpfMonStartState *s)
{
    if (!s)
        return;
    epicsMutexDestroy(s->lock);
    free(s);
}

int ebpfMonStartStateIsRunning(const ebpfMonStartState *s)
{
    return epicsAtomicGetIntT(&s->isRunning);
}

ebpfMonStartTurn ebpfMonStartStateBegin(ebpfMonStartState *s)
{
    ebpfMonStartTurn turn;

    epicsMutexMustLock(s->lock);
    turn = s->isStarting ? ebpfMonStartBusy : ebpfMonStartStateIsRunning(s) ? ebpfMonStartDone : ebpfMonStartMine;
    s->isStarting |= turn == ebpfMonStartMine;
    epicsMutexUnlock(s->lock);
    return turn;
}

void ebpfMonStartStateEnd(ebpfMonStartState *s, int ok)
{
    epicsMutexMustLock(s->lock);
    s->isStarting = 0;
    s->hasFailed = !ok;
    epicsAtomicSetIntT(&s->isRunning, !!ok);
    epicsMutexUnlock(s->lock);
}

int ebpfMonStartStateStop(ebpfMonStartState *s)
{
    int ran;

    epicsMutexMustLock(s->lock);
    ran = ebpfMonStartStateIsRunning(s);
    epicsAtomicSetIntT(&s->isRunning, 0);
    epicsMutexUnlock(s->lock);
    return ran;
}

ebpfMonOpStatus ebpfMonStartStateGetStatus(ebpfMonStartState *s)
{
    ebpfMonOpStatus status;

    epicsMutexMustLock(s->lock);
    status = ebpfMonStartStateIsRunning(s) ? ebpfMonOpDone : s->hasFailed ? ebpfMonOpStartFailed : ebpfMonOpNotStarted;
    epicsMutexUnlock(s->lock);
    return status;
}

int ebpfMonStartStateRefuses(ebpfMonStartState *s, char *why, size_t size)
{
    int started;

    epicsMutexMustLock(s->lock);
    started = s->isStarting || ebpfMonStartStateIsRunning(s);
    epicsMutexUnlock(s->lock);
    if (started)
        snprintf(why, size, "already started; call it before iocInit");
    return started;
}

int ebpfMonStartStateCountFilter(ebpfMonStartState *s, unsigned *count)
{
    int running;

    epicsMutexMustLock(s->lock);
    running = ebpfMonStartStateIsRunning(s);
    s->filters += !!running;
    *count = s->filters;
    epicsMutexUnlock(s->lock);
    return running;
}
