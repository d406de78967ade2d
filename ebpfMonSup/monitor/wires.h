/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire thread: packets of every network namespace that has a watched IOC, and of our own, become puts, searches
 * and beacons. */
#ifndef EBPFMON_WIRES_H
#define EBPFMON_WIRES_H

#include <stddef.h>

/* "ringBytes" of each namespace. */
void ebpfMonWiresStart(unsigned ringBytes);
void ebpfMonWiresStop(void);

#endif
