/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts threads that may wait for ever, for example for the kernel: at ordinary priority, with all signals blocked.
 * Nobody waits for their end. (epicsThreadCreate() would give them real-time priority where that is allowed.) No state;
 * any thread.
 */
#ifndef EBPFMON_PLAINTHREAD_H
#define EBPFMON_PLAINTHREAD_H

#include <stddef.h>

/* Starts a thread. 0, or the error of pthread_create(): there are too many threads, or no memory. */
int ebpfMonPlainThreadStart(void *(*run)(void *arg), void *arg, size_t stackBytes);

#endif
