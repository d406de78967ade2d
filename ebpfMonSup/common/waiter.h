/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread sleeps until another one wakes it, or until a time has passed. epicsEventWaitWithTimeout() measures this
 * time by the wall clock (osdEvent.c: pthread_cond_timedwait). If somebody sets the clock back by an hour, it sleeps an
 * hour longer. A waiter does not.
 */
#ifndef EBPFMON_WAITER_H
#define EBPFMON_WAITER_H

/* An eventfd. It has no owner: one thread waits, any thread wakes it, until the file is closed. */
typedef struct {
    int file;
} ebpfMonWaiter;

/* Makes a waiter. 0, or -1: this process may not open another file. */
int ebpfMonWaiterMake(ebpfMonWaiter *waiter);
void ebpfMonWaiterEnd(ebpfMonWaiter *waiter);

/* Wakes the thread that waits. One call is remembered if nobody waits. */
void ebpfMonWaiterWake(const ebpfMonWaiter *waiter);

/* Sleeps for "seconds" at most; it also ends when the file "fd" is readable, if that is not -1, or when a signal comes.
 * Nonzero: *woken tells if it was woken, else the file is readable. */
int ebpfMonWaiterWait(const ebpfMonWaiter *waiter, int fd, double seconds, int *woken);

#endif
