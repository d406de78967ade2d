/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet thread: packets of every network namespace that has a watched IOC, and of our own, become puts, searches
 * and beacons.
 */
#ifndef EBPFMON_PACKETTHREAD_H
#define EBPFMON_PACKETTHREAD_H

struct ebpfMonMonitor;

typedef struct ebpfMonPacketThread ebpfMonPacketThread;

/* The monitor stays the caller's. "ringBytes": of the packet ring of each namespace. NULL without memory, with a message. */
ebpfMonPacketThread *ebpfMonPacketThreadStart(struct ebpfMonMonitor *m, unsigned ringBytes);

/* As ebpfMonEventThreadStop. */
int ebpfMonPacketThreadStop(ebpfMonPacketThread **thread);

#endif
