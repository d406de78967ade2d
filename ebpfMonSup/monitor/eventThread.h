/* SPDX-License-Identifier: BSD-3-Clause */
/* The event thread: reads the events of the kernel part, and makes puts and traces of them. */
#ifndef EBPFMON_EVENTTHREAD_H
#define EBPFMON_EVENTTHREAD_H

struct ebpfMonMonitor;

typedef struct ebpfMonEventThread ebpfMonEventThread;

/* The monitor stays the caller's. NULL without memory. */
ebpfMonEventThread *ebpfMonEventThreadStart(struct ebpfMonMonitor *m);

/* Publishes what waits, ends the thread, frees it and sets *thread to NULL; none there does no harm. 0, or -1: it still
 * runs, and nothing is freed. */
int ebpfMonEventThreadStop(ebpfMonEventThread **thread);

#endif
