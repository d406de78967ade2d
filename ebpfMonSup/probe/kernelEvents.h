/* SPDX-License-Identifier: BSD-3-Clause */
/* The event ring of the loaded kernel part (kernelLoad.h), and how it tells that a silence is over. For the event
 * thread only, if a function does not say otherwise. */
#ifndef EBPFMON_KERNELEVENTS_H
#define EBPFMON_KERNELEVENTS_H

#include <stddef.h>
#include "ebpfMonEvent.h"

/* "size": bytes of the whole event. "head" is valid during the call only. */
typedef void (*ebpfMonEventFn)(void *arg, const struct ebpfMonHead *head, size_t size);

/* Calls "event" for each event that has come. Returns their number. *isWhole: see ebpfMonRingRead. */
unsigned ebpfMonKernelReadEvents(ebpfMonEventFn event, void *arg, int *isWhole);

/* How the event thread sleeps: see ring.h. For ebpfMonRingReaderCalls (common/ringReader.h), so they have an argument,
 * which they do not need. The file becomes readable when an event wakes the thread; it stays the kernel part's. */
int ebpfMonKernelEventsFile(void *none);
int ebpfMonKernelEventsBeginSleep(void *none);
void ebpfMonKernelEventsEndSleep(void *none);
int ebpfMonKernelEventsAreAnnounced(void *none); /* nonzero: since BeginSleep a packet took the wake-up from the events,
                                                  * or an event wakes the thread. Any thread */

/* A silence: no IOC hits a probe, so nobody needs to look at the tables. The first three: any thread. */
void ebpfMonKernelBeginSilence(void); /* it lasts until the next hit. Look at the tables once more after this call */
int ebpfMonKernelIsSilent(void);      /* nonzero: no hit, and no Break, since Begin */
void ebpfMonKernelBreakSilence(void); /* something happened without a hit */
int ebpfMonKernelTakeSilenceEnd(void); /* nonzero once after each silence. A hit that ends one wakes the event thread */

#endif
