/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The newest packets in a ring in memory, and a file of them for Wireshark (pcapng, draft-ietf-opsawg-pcapng), in which
 * the comment of a packet says of which IOC, client and PV it is.
 */
#ifndef EBPFMON_HISTORYPACKETS_H
#define EBPFMON_HISTORYPACKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/worker.h"
#include "ebpfMonModule.h"
#include "history/packetChains.h"

/* --- ring ---
 *
 * Entries of any length in memory of a fixed size: a new one pushes out the oldest. The caller has a lock, if several
 * threads use it. */

typedef struct {
    uint8_t *bytes;
    size_t   size;
    uint64_t first, end;   /* bytes since the begin: of the oldest entry, and after the newest one */
} ebpfMonHistoryRing;

/* 0, or -1 without memory. Never freed. */
int ebpfMonHistoryRingInit(ebpfMonHistoryRing *ring, size_t size);

/* Adds an entry of these parts. One that is larger than the ring is left out. */
void ebpfMonHistoryRingAdd(ebpfMonHistoryRing *ring, const struct iovec *part, int parts);

/* Copies the entry at *at, or the oldest one if that is gone, and moves *at behind it. Returns its length; 0: there is
 * none before "end", or it is larger than "size". */
size_t ebpfMonHistoryRingRead(const ebpfMonHistoryRing *ring, uint64_t *at, uint64_t end, void *buf, size_t size);

/* --- packets --- */

typedef struct ebpfMonHistoryPackets ebpfMonHistoryPackets;

/* "bytes": of memory. "payload": bytes that are kept of what TCP or UDP carries. NULL without memory. Never freed. */
ebpfMonHistoryPackets *ebpfMonHistoryPacketsNew(size_t bytes, size_t payload);

/* "note": lines about the packet (packetNotes.h); empty: nothing is known. Packet thread. */
void ebpfMonHistoryPacketsAdd(ebpfMonHistoryPackets *packets, const ebpfMonModulePacket *packet, const char *note);

/* Writes those that are there now. "note": about all of them. "chains": of their puts; NULL: not known. The packet
 * thread waits for no more than the copy of one packet. One thread at a time. 0; -1: "why" says what is wrong, and
 * there is no file. */
int ebpfMonHistoryPacketsWrite(ebpfMonHistoryPackets *packets, const char *file, const char *note,
                               ebpfMonPacketChains *chains, ebpfMonWorker *worker, char *why, size_t size);

#endif
