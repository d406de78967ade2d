/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes finished puts of the put events that the kernel part sends. All functions: event thread only. The caller holds
 * no lock, because sinks are called, /proc is read, and a user name may take a short time (userNames.h).
 */
#ifndef EBPFMON_IOCPUTS_H
#define EBPFMON_IOCPUTS_H

#include "model/audits.h"
#include "model/losses.h"
#include "put/finishedPut.h"
#include "put/linkWrites.h"
#include "put/putClients.h"
#include "put/putJoin.h"
#include "put/threadPuts.h"
#include "watch/target.h"

typedef struct ebpfMonIocPuts ebpfMonIocPuts;

/* The sinks. All are called on the event thread, with "arg". */
typedef struct {
    ebpfMonPutSink finished;
    void (*linkWritten)(void *arg, const ebpfMonLinkWrite *write); /* a record wrote through a CA link */
    void (*linkChanged)(void *arg, uint32_t iocId, uint64_t precord); /* the links of the record must be read again */
    uint64_t (*countLost)(void *arg); /* events of the kernel part that were lost so far */
    int (*missedReceive)(void); /* nonzero: a receive of a thread may not have been seen in the last seconds. NULL:
                                 * all are seen */
    void *arg;
} ebpfMonIocPutSinks;

/* All arguments stay the caller's; the sinks are copied. NULL without memory. */
ebpfMonIocPuts *ebpfMonIocPutsNew(ebpfMonTargets *targets, ebpfMonPutClients *clients, ebpfMonPutJoin *join,
                                  ebpfMonLinkWrites *linkWrites, ebpfMonThreadPuts *threadPuts, ebpfMonLosses *losses,
                                  ebpfMonAudits *audits, const ebpfMonIocPutSinks *sinks);
void ebpfMonIocPutsFree(ebpfMonIocPuts *puts);

/* Add one event; "size": its bytes. An event that is too short is ignored. */
void ebpfMonIocPutsAddPut(ebpfMonIocPuts *puts, const struct ebpfMonPutEvent *ev, size_t size);
void ebpfMonIocPutsAddResult(ebpfMonIocPuts *puts, const struct ebpfMonResultEvent *ev, size_t size);
void ebpfMonIocPutsAddCause(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size);
void ebpfMonIocPutsAddLinkWrite(ebpfMonIocPuts *puts, const struct ebpfMonCauseEvent *ev, size_t size);

/* Calls the function of these four that fits the kind of the event. 0: the event is not about puts. */
int ebpfMonIocPutsAddEvent(ebpfMonIocPuts *puts, const struct ebpfMonHead *head, size_t size);

/* The time (monotonic ns) of the oldest put that is not finished yet; UINT64_MAX: all are. */
uint64_t ebpfMonIocPutsGetOldest(const ebpfMonIocPuts *puts);

/* When to call ebpfMonIocPutsTick even if nothing happens (monotonic ns): see ebpfMonPendingPutsGetDue. */
uint64_t ebpfMonIocPutsGetDue(const ebpfMonIocPuts *puts, uint64_t now);

/* Publishes the puts that have waited long enough at "now" (monotonic ns); with "all" every one. */
void ebpfMonIocPutsTick(ebpfMonIocPuts *puts, uint64_t now, int all);

#endif
