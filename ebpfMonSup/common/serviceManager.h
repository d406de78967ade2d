/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports the state of this process to the service manager that started it, by the protocol of sd_notify(3): a datagram
 * with lines "NAME=value" to the UNIX socket that the environment variable NOTIFY_SOCKET names. Without that variable
 * nothing happens. It never waits: a message that does not fit into the manager's queue is dropped. Any thread.
 */
#ifndef EBPFMON_SERVICEMANAGER_H
#define EBPFMON_SERVICEMANAGER_H

#include <stdint.h>

/* Sends a message, formatted as by printf(), of up to 500 bytes. Text of others must be cleaned before (common/text.h),
 * because a line feed in it begins the next assignment. 0: it was sent; -1: nobody listens, or it could not be sent. */
int ebpfMonServiceTell(const char *format, ...) __attribute__((format(__printf__, 1, 2)));

/* The service manager kills this process after so many ns without WATCHDOG=1; 0: never. */
uint64_t ebpfMonServiceWatchdog(void);

#endif
