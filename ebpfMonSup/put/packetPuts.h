/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes finished puts of puts that were seen in packets only. Packet thread only; the caller holds no lock, because
 * /proc is read. */
#ifndef EBPFMON_PACKETPUTS_H
#define EBPFMON_PACKETPUTS_H

#include "put/finishedPut.h"
#include "put/linkWrites.h"
#include "put/packetPut.h"
#include "put/putClients.h"

typedef struct ebpfMonPacketPuts ebpfMonPacketPuts;

/* "sink" receives each put, with its texts; iocId, tid and id are 0. Clients and links stay the caller's. NULL without
 * memory. */
ebpfMonPacketPuts *ebpfMonPacketPutsNew(ebpfMonPutClients *clients, ebpfMonLinkWrites *linkWrites, ebpfMonPutSink sink,
                                        void *arg);
void ebpfMonPacketPutsFree(ebpfMonPacketPuts *puts);

/* "packet": as ebpfMonPutJoinTakeUnmatched returns it; it stays the caller's. "server": the name of its server.
 * "missed": a watched IOC may have made the put and the monitor may have missed it, so the result is not LOST. */
void ebpfMonPacketPutsFinish(ebpfMonPacketPuts *puts, const ebpfMonPacketPut *packet, const char *server, int missed);

#endif
