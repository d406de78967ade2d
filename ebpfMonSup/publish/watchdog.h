/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog notices threads of the monitor that make no progress, and names them in STATE_MSG. It waits for none of
 * them: it takes only the locks of the list of workers and of the published values, which every thread holds for a
 * short time only. It runs at real-time priority if EPICS may use that.
 *
 * It also feeds the watchdog of the service manager, if there is one (common/serviceManager.h), unless a thread is
 * stuck that a restart could help; and it tells the service manager the state in words.
 */
#ifndef EBPFMON_WATCHDOG_H
#define EBPFMON_WATCHDOG_H

/* Starts the watchdog, once per process; it ends with the process. 0; or -1, and a message says why: the thread could
 * not be started. */
int ebpfMonWatchdogStart(void);

#endif
