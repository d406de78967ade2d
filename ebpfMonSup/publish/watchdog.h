/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: notices threads of ours that make no progress, and STATE says which. It waits for none of them: it takes
 * the list of workers and the published values, whose locks are held for a look or a copy. It runs at real-time priority
 * where EPICS may have that, and its loop is as long as the list.
 */
#ifndef EBPFMON_WATCHDOG_H
#define EBPFMON_WATCHDOG_H

/* Starts it, once in a process; it ends with the process. 0, or -1: no thread, and a message says so. */
int ebpfMonWatchdogStart(void);

#endif
