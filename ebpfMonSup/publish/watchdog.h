/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: notices threads of ours that make no progress, and STATE says which. It waits for none of them: it takes
 * the list of workers and the published values, whose locks are held for a look or a copy. It runs at real-time priority
 * where EPICS may have that, and its loop is as long as the list.
 *
 * It also feeds the watchdog of the service manager, if there is one (common/serviceManager.h), as long as none of the
 * threads is stuck that a restart could help; and it hands it the state in words.
 */
#ifndef EBPFMON_WATCHDOG_H
#define EBPFMON_WATCHDOG_H

/* Starts it, once in a process; it ends with the process. 0, or -1: no thread, and a message says so. */
int ebpfMonWatchdogStart(void);

#endif
