/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What IOCs pay for the packets that their servers send: our program in the kernel looks at each of them, and copies
 * it, while the thread of the IOC sends it. Packets that an IOC receives are paid by whoever sends them. No level
 * changes this, so the budget does not count it. Packet thread only; it takes the lock of the targets.
 */
#ifndef EBPFMON_PACKETCOST_H
#define EBPFMON_PACKETCOST_H

#include "watch/target.h"

/* The program took "ns" from this IOC (ebpfMonPacket.took). An IOC that has been forgotten pays nothing. */
void ebpfMonPacketCostAdd(ebpfMonTargets *targets, uint32_t iocId, uint64_t ns);

/* "seconds" have passed since the last call: the costs of all IOCs are those of the last ten seconds or so, because few
 * packets are measured. */
void ebpfMonPacketCostTick(ebpfMonTargets *targets, double seconds);

#endif
