/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The newest packets in a ring in memory, and a file of them for Wireshark (pcapng, draft-ietf-opsawg-pcapng), in which
 * the comment of a packet says of which IOC, client and PV it is.
 */
#ifndef EBPFMON_HISTORYPACKETS_H
#define EBPFMON_HISTORYPACKETS_H

#include "common/worker.h"
#include "ebpfMonModule.h"

typedef struct ebpfMonHistoryPackets ebpfMonHistoryPackets;

/* "bytes": of memory. "payload": bytes that are kept of what TCP or UDP carries. NULL without memory. Never freed. */
ebpfMonHistoryPackets *ebpfMonHistoryPacketsNew(size_t bytes, size_t payload);

/* "note": lines about the packet (packetNotes.h); empty: nothing is known. Packet thread. */
void ebpfMonHistoryPacketsAdd(ebpfMonHistoryPackets *packets, const ebpfMonModulePacket *packet, const char *note);

/* Writes those that are there now. "note": about all of them. The packet thread waits for no more than the copy of one
 * packet. One thread at a time. 0; -1: "why" says what is wrong, and there is no file. */
int ebpfMonHistoryPacketsWrite(ebpfMonHistoryPackets *packets, const char *file, const char *note,
                               ebpfMonWorker *worker, char *why, size_t size);

#endif
