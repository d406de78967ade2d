/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports the state of this process to the service manager that started it, by the protocol of sd_notify(3): one datagram of lines
 * "NAME=value" to the UNIX socket that the environment variable NOTIFY_SOCKET names. Without it nothing happens. It waits
 * for nothing: a message that does not fit into the manager's queue is dropped. Any thread.
 */
#ifndef EBPFMON_SERVICEMANAGER_H
#define EBPFMON_SERVICEMANAGER_H

#include <stdint.h>

/* As printf; up to 500 bytes. A line from elsewhere must have passed common/text.h: a line break in it begins the next
 * assignment. 0: sent; -1: nobody listens, or it could not be sent. */
int ebpfMonServiceTell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The service manager kills this process after so many ns without WATCHDOG=1; 0: never. */
uint64_t ebpfMonServiceWatchdog(void);

#endif
