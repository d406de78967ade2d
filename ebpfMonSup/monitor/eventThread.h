/* SPDX-License-Identifier: BSD-3-Clause */
/* The event thread: reads the events of the kernel part, and makes puts and traces of them. It sleeps until an event
 * wakes it, until somebody wakes it, or until something is due. */
#ifndef EBPFMON_EVENTTHREAD_H
#define EBPFMON_EVENTTHREAD_H

struct ebpfMonMonitor;

typedef struct ebpfMonEventThread ebpfMonEventThread;

/* The monitor stays the caller's. The thread does not run yet. NULL without memory. */
ebpfMonEventThread *ebpfMonEventThreadNew(struct ebpfMonMonitor *m);
void ebpfMonEventThreadFree(ebpfMonEventThread *thread); /* after a successful stop; NULL does no harm */

int ebpfMonEventThreadStart(ebpfMonEventThread *thread); /* 0, or -1 without memory */
/* Publishes what waits, and ends the thread; one that does not run does no harm. 0, or -1: it still runs. */
int ebpfMonEventThreadStop(ebpfMonEventThread *thread);

/* There is something to do that no event tells. "thread": an ebpfMonEventThread. Any thread, whether it runs or not. */
void ebpfMonEventThreadWake(void *thread);

#endif
