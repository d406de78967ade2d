/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker that runs only if it is needed: it starts when its owner has begun, and a configuration asks for it. It then
 * runs until it is stopped. Other threads may set the configuration and wake the worker at any time, also before it
 * starts and while it is stopped.
 */
#ifndef EBPFMON_NEEDEDWORKER_H
#define EBPFMON_NEEDEDWORKER_H

#include <epicsMutex.h>

#include "common/sharedWorker.h"

typedef struct {
    ebpfMonWorker *(*start)(void *arg); /* starts the thread; NULL: it cannot be started */
    int (*isNeeded)(const void *conf);  /* nonzero: this configuration needs the thread */
    void  *arg;
    void  *conf; /* the newest configuration: memory of the owner, which the lock guards */
    size_t size; /* of a configuration */
} ebpfMonNeededWorkerUses;

typedef struct {
    ebpfMonNeededWorkerUses uses;
    epicsMutexId lock;       /* guards what follows, and *uses.conf */
    unsigned     generation; /* counts configurations */
    unsigned     applied;    /* the one that the thread has taken last */
    int          hasBegun, isStarted;
    ebpfMonSharedWorker worker; /* has a lock of its own */
} ebpfMonNeededWorker;

void ebpfMonNeededWorkerInit(ebpfMonNeededWorker *needed, const ebpfMonNeededWorkerUses *uses);

/* The owner has begun: from now on the thread starts when it is needed. 0, or -1: it cannot be started. */
int ebpfMonNeededWorkerBegin(ebpfMonNeededWorker *needed);

/* Copies a new configuration, and wakes the thread. Starts the thread if it is needed. 0, or -1: it cannot be started.
 * Any thread. */
int ebpfMonNeededWorkerConfigure(ebpfMonNeededWorker *needed, const void *conf);

/* Nonzero: there was a new configuration, and it was copied to "conf". Only the thread itself calls it, and holds the
 * lock. */
int ebpfMonNeededWorkerTake(ebpfMonNeededWorker *needed, void *conf);

/* Wakes the thread, if it runs. Any thread. */
void ebpfMonNeededWorkerWake(ebpfMonNeededWorker *needed);

/* Stops the thread as ebpfMonWorkerStop does, with the same result. 0: it does not run. */
int ebpfMonNeededWorkerStop(ebpfMonNeededWorker *needed, double seconds);

#endif
