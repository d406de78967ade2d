/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire thread: packets of every network namespace that has a watched IOC, and of our own, become puts, searches
 * and beacons. */
#ifndef EBPFMON_PACKETTHREAD_H
#define EBPFMON_PACKETTHREAD_H

#include <stddef.h>

/* "ringBytes" of each namespace. */
void ebpfMonPacketThreadStart(unsigned ringBytes);
void ebpfMonPacketThreadStop(void);

#endif
