/* SPDX-License-Identifier: BSD-3-Clause */
/* The event ring of the loaded kernel part (kernelLoad.h), and how it tells that a silence is over. Event thread only,
 * but for silences. */
#ifndef EBPFMON_KERNELEVENTS_H
#define EBPFMON_KERNELEVENTS_H

#include <stddef.h>
#include "ebpfMonEvent.h"

/* "size": bytes of the whole event. "head" is valid during the call only. */
typedef void (*ebpfMonEventFn)(void *arg, const struct ebpfMonHead *head, size_t size);

/* Calls "event" for each event that has come. Returns their number. *isWhole: see ebpfMonRingRead. */
unsigned ebpfMonKernelReadEvents(ebpfMonEventFn event, void *arg, int *isWhole);

/* How the event thread sleeps: see ring.h. The file becomes readable when an event wakes the thread; it stays the
 * kernel part's. */
int ebpfMonKernelEventsFile(void);
int ebpfMonKernelEventsBeginSleep(void);
void ebpfMonKernelEventsEndSleep(void);

/* A silence: no IOC hits a probe, so nobody needs to look at the tables. Begin: a silence begins now, if no probe is
 * hit any more; the publishing thread looks at the tables after it. Is: nonzero: there was no hit, and no Break, since
 * Begin. Break: something else happened. TakeEnd: nonzero once after each silence: it is over; if a hit ended it, the
 * event thread was woken. All but the last: any thread. */
void ebpfMonKernelBeginSilence(void);
int ebpfMonKernelIsSilent(void);
void ebpfMonKernelBreakSilence(void);
int ebpfMonKernelTakeSilenceEnd(void);

#endif
