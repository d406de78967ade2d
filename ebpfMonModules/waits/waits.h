/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What waits in the watched IOCs, and for what: puts with completion and active records (iocWaits.h); while a thread
 * hangs, threads (waitGraph.h). The thread of the module reads them once a second, less often in a silence; records in
 * turns, so that it takes no more than EBPFMON_WAITS_COST of a core. Nothing is attached.
 */
#ifndef EBPFMON_WAITS_H
#define EBPFMON_WAITS_H

#include "ebpfMonModule.h"
#include "model/published.h"
#include "waits/iocWaits.h"

#define EBPFMON_WAITS_COST 0.002 /* cores */
#define EBPFMON_WAIT_ROWS  100

/* A row of the table WAITS. */
typedef struct {
    char   ioc[EBPFMON_IOCNAME_SIZE];
    char   pv[80];
    char   kind[16];       /* "put", "process", "active"; "thread": a thread that hangs, and "pv" is its name */
    char   client[220];
    char   since[32];      /* "12:03:04", "before 12:03:04" */
    double seconds;
    char   waits[EBPFMON_WAIT_TEXT];
} ebpfMonWaitRow;

typedef struct {
    unsigned puts;         /* under way for longer than ebpfMonWaitLimit */
    double   putMax;       /* s: the longest */
    char     putCause[EBPFMON_WAIT_TEXT]; /* … and for what it waits */
    unsigned actives;      /* records that are active for longer than that */
    double   activeMax;
    unsigned deadlocks;    /* threads that wait for each other, or for a mutex whose owner has ended */
    char     deadlockCause[EBPFMON_WAIT_TEXT];
    double   cost;         /* percent of one core */
    char     state[200];
    unsigned rows;
    ebpfMonWaitRow row[EBPFMON_WAIT_ROWS];
    char     text[16000];
} ebpfMonWaitValues;

typedef struct ebpfMonWaits ebpfMonWaits;

/* There is one in a process, never freed: a shell command may still use it. NULL without memory. */
ebpfMonWaits *ebpfMonWaitsNew(const ebpfMonModule *module);
/* As ebpfMonModule.start, stop and put. */
int ebpfMonWaitsBegin(void *waits, const ebpfMonModuleCore *core);
int ebpfMonWaitsStop(void *waits, double seconds);
void ebpfMonWaitsAddPut(void *waits, const ebpfMonModulePut *put);

void ebpfMonWaitsWake(ebpfMonWaits *waits); /* something has happened. Any thread */

/* The published values. Under the lock of ebpfMonModuleLock. */
const ebpfMonWaitValues *ebpfMonWaitsGetValues(const ebpfMonWaits *waits);

/* What waits for longer than so many seconds is shown. One per process, because it is a variable of iocsh. */
extern double ebpfMonWaitLimit;

#endif
