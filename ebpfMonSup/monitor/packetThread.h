/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet thread: packets of every network namespace that has a watched IOC, and of our own, become puts, searches
 * and beacons. It sleeps until a packet wakes it, until somebody wakes it, or until something is due.
 */
#ifndef EBPFMON_PACKETTHREAD_H
#define EBPFMON_PACKETTHREAD_H

struct ebpfMonMonitor;

typedef struct ebpfMonPacketThread ebpfMonPacketThread;

/* The monitor stays the caller's. "ringBytes": of the packet ring of each namespace. The thread does not run yet. NULL
 * without memory. */
ebpfMonPacketThread *ebpfMonPacketThreadNew(struct ebpfMonMonitor *m, unsigned ringBytes);
void ebpfMonPacketThreadFree(ebpfMonPacketThread *thread); /* as ebpfMonEventThreadFree, as the two that follow */

int ebpfMonPacketThreadStart(ebpfMonPacketThread *thread);
int ebpfMonPacketThreadStop(ebpfMonPacketThread *thread);

/* There is something to do that no packet tells. NULL: nothing happens. Any thread, whether it runs or not. */
void ebpfMonPacketThreadWake(ebpfMonPacketThread *thread);

#endif
