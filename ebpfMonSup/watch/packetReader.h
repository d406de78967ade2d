/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of all network namespaces that have a watched IOC, and of our own, become events of the wire. Packet
 * thread only. No lock may be held, for /proc is read.
 */
#ifndef EBPFMON_PACKETREADER_H
#define EBPFMON_PACKETREADER_H

#include "model/stateValues.h"
#include "probe/packetSources.h"
#include "watch/connectionOwners.h"
#include "watch/target.h"
#include "wire/wireEvent.h"

typedef struct ebpfMonPacketReader ebpfMonPacketReader;

typedef struct {
    ebpfMonWireSink event;
    /* Of these namespaces (inodes) packets are read. Called before they are opened, because packets will show a put
     * that is made meanwhile; and again with those that could be opened. */
    void (*covers)(void *arg, const uint32_t *netns, unsigned count);
    ebpfMonConnectionOwnersSet setOwner; /* of each connection that is there already in another namespace */
    void *arg;              /* of the first two */
} ebpfMonPacketReaderSink;

/* "ringBytes": of the packet ring of each namespace. The targets stay the caller's, "sink" is copied. NULL without
 * memory. */
ebpfMonPacketReader *ebpfMonPacketReaderNew(ebpfMonTargets *targets, unsigned ringBytes,
                                            const ebpfMonPacketReaderSink *sink);
void ebpfMonPacketReaderFree(ebpfMonPacketReader *reader); /* NULL does no harm */

/* IOCs came or went, or some seconds have passed: opens and closes. "now": monotonic ns. */
void ebpfMonPacketReaderFollow(ebpfMonPacketReader *reader, uint64_t now);

/* Hands the events of the packets that have come to the sink. Returns the number of packets; *isWhole: as ebpfMonRingRead
 * has it. */
unsigned ebpfMonPacketReaderRead(ebpfMonPacketReader *reader, int *isWhole);

/* To sleep until packets come. */
ebpfMonPacketSources *ebpfMonPacketReaderGetSources(ebpfMonPacketReader *reader);

/* A server listens there: see ebpfMonPacketsPort. "netns" 0: in all. */
void ebpfMonPacketReaderExpectPort(ebpfMonPacketReader *reader, uint32_t netns, uint16_t port);

/* Once a second: what is late becomes an event, and *values what is to be published. "seconds": since the last call. */
void ebpfMonPacketReaderTick(ebpfMonPacketReader *reader, double seconds, ebpfMonPacketValues *values);

#endif
