/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for whom in one IOC: its threads, the mutexes for which they wait, and who has these; read from /proc and
 * from the memory of the IOC while something hangs. Only the thread of waits.c uses this module.
 */
#ifndef EBPFMON_WAITGRAPH_H
#define EBPFMON_WAITGRAPH_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shared/functionSite.h"
#include "ioc/mutexes.h"
#include "waits/asynPorts.h"

typedef struct {
    pid_t    tid, inner;  /* inner: as the process itself sees it (its PID namespace) */
    char     name[16];
    char     state;       /* proc(5): 'R', 'S', 'D', 'T' and so on */
    long     call;        /* system call in which it is; -1: none, or not known */
    uint64_t arg[6];
    uint64_t switches;    /* of context, so far; the same at two looks: it did not run in between. If it waits for the
                           * GIL: how often others have taken that */
    uint64_t mutex;       /* address of the futex of the mutex for which it waits, or the epicsMutexId of the lock of a
                           * port of asyn, in whose queue it waits, or Python's GIL; 0: for none */
    pid_t    owner;       /* tid of who has the mutex; 0: not known, or it has ended */
    pid_t    ended;       /* inner tid of an owner that has ended; 0: none has */
    pid_t    far;         /* tid of an owner in another process that shares the mutex; 0: none, or not known */
    int      isEnd;       /* it waits for the end of the owner (pthread_join), not for a mutex … */
    int      isReadWrite; /* … or for a read-write lock, which the owner has to write */
    int      isTimed;     /* it waits for a time only */
    int      isSame;      /* at the look before it waited for the same, and has not run since */
} ebpfMonWaitThread;

typedef struct {
    pid_t    pid;
    ebpfMonMem *mem;           /* this and the next one are the caller's, from Read until Clear */
    const ebpfMonCatalogue *cat;
    ebpfMonWaitThread *thread; /* by tid */
    size_t   threads, room;
    ebpfMonMutexes *mutexes;   /* NULL: not read yet */
    ebpfMonAsynPorts asyn;
    int      isSearched;       /* the next two are known, also after Clear; 0: the IOC has none */
    uint64_t asynAt;           /* … pasynBase */
    ebpfMonVariable python;    /* … _PyRuntime */
} ebpfMonWaitGraph;

/* Reads the threads, and the ports of asyn. 0, or -1: the process is gone. */
int ebpfMonWaitGraphRead(ebpfMonWaitGraph *graph, pid_t pid, ebpfMonMem *mem, const ebpfMonCatalogue *cat);
void ebpfMonWaitGraphClear(ebpfMonWaitGraph *graph);

/* The thread waits for itself, through others, and none of them has run since the look before, nor waits for a time
 * only: returns the least tid of the cycle. 0: there is no such cycle, or it is not sure yet. */
pid_t ebpfMonWaitGraphFindCycle(const ebpfMonWaitGraph *graph, pid_t tid);

/* Where its chain of waits ends, in one sentence: "scan-1 waits for the lock set of A, which cbLow has; cbLow waits …".
 * "brief": for AMSG. Reads the mutexes and the stack of the last thread. Nonzero: it is a deadlock, or a mutex whose
 * owner has ended. 0: not; or there is no such thread, and the text is empty. */
int ebpfMonWaitGraphDescribe(ebpfMonWaitGraph *graph, pid_t tid, char *text, size_t size, char *brief,
                             size_t briefSize);

/* Adds a line for each thread that waits for what this one has, also through others: "  scan-0.1 waits for the lock set
 * of VAC:A, at dbScanLock (libdbCore.so) < scanList < periodicTask". */
void ebpfMonWaitGraphAddWaiters(ebpfMonWaitGraph *graph, pid_t tid, char *text, size_t size);

/* Adds the port of asyn for which the record waits, and the thread that has the port: "; waits for port L0, which L0
 * has: L0 waits …". */
void ebpfMonWaitGraphAddPort(ebpfMonWaitGraph *graph, uint32_t record, char *text, size_t size);

#endif
