/* SPDX-License-Identifier: BSD-3-Clause */
/* The event ring of the loaded kernel part (kernelLoad.h). Event thread only. */
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

#endif
