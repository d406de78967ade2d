/* SPDX-License-Identifier: BSD-3-Clause */
/* The event ring of the loaded kernel part (kernelLoad.h). One thread: the event thread. */
#ifndef EBPFMON_KERNELEVENTS_H
#define EBPFMON_KERNELEVENTS_H

#include <stddef.h>
#include "ebpfMonEvent.h"

/* "size": of the whole event; memory of "head" is valid during the call only. */
typedef void (*ebpfMonEventFn)(void *arg, const struct ebpfMonHead *head, size_t size);

/* Calls "event" for each event that has come. Returns their number. *isWhole: as ebpfMonRingRead has it. */
unsigned ebpfMonKernelReadEvents(ebpfMonEventFn event, void *arg, int *isWhole);

/* How the thread sleeps: as in ring.h. The file can be read when an event has woken it. */
int ebpfMonKernelEventsFile(void);
int ebpfMonKernelEventsBeginSleep(void);
void ebpfMonKernelEventsEndSleep(void);

#endif
