/* SPDX-License-Identifier: BSD-3-Clause */
/* The event ring of the loaded kernel part (kernelLoad.h). One thread: the event thread. */
#ifndef EBPFMON_KERNELEVENTS_H
#define EBPFMON_KERNELEVENTS_H

#include <stddef.h>
#include "ebpfMonEvent.h"

/* "size": of the whole event; memory of "head" is valid during the call only. */
typedef void (*ebpfMonEventFn)(void *arg, const struct ebpfMonHead *head, size_t size);

/* Waits at most "ms" for events and calls "event" for each. Returns how many came, or -1. */
int ebpfMonKernelReadEvents(int ms, ebpfMonEventFn event, void *arg);

#endif
