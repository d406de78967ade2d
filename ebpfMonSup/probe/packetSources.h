/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet sources (packets.h) of all network namespaces that are watched: one for our own and one for each that an
 * IOC lives in. Packet thread only.
 */
#ifndef EBPFMON_PACKETSOURCES_H
#define EBPFMON_PACKETSOURCES_H

#include "host/procNetns.h"
#include "probe/packets.h"

#define EBPFMON_PACKET_SOURCES_MAX 32

typedef struct ebpfMonPacketSources ebpfMonPacketSources;

typedef struct {
    unsigned count;
    int      trouble;  /* a namespace could not be opened */
    uint64_t passed;   /* packets, of the sources that are open; so it falls when one is closed */
    uint64_t dropped;  /* packets that were lost because a ring was full, since the start */
} ebpfMonPacketSourcesState;

typedef struct {
    /* A packet: see ebpfMonPacketFn. "netns": inode of its namespace. */
    void (*packet)(void *arg, uint32_t netns, uint64_t time, const uint8_t *ip, size_t len, size_t wireLen);
    /* A namespace that is not ours was opened: process "pid" lives in it. */
    void (*opened)(void *arg, pid_t pid, uint32_t netns);
    void *arg;
} ebpfMonPacketSourcesSink;

/* "ringBytes": for each source. NULL without memory. */
ebpfMonPacketSources *ebpfMonPacketSourcesNew(unsigned ringBytes, const ebpfMonPacketSourcesSink *sink);
void ebpfMonPacketSourcesFree(ebpfMonPacketSources *sources);

/* Opens and closes, so that these namespaces have a source, as ebpfMonProcNetnsList lists them. One that cannot be opened
 * is tried again after 30 s; the reason is logged once. "now": monotonic ns. */
void ebpfMonPacketSourcesFollow(ebpfMonPacketSources *sources, const ebpfMonNetns *list, unsigned count, uint64_t now);

/* Inodes of the namespaces that have a source; room for EBPFMON_PACKET_SOURCES_MAX. Returns the number. */
unsigned ebpfMonPacketSourcesList(const ebpfMonPacketSources *sources, uint32_t *netns);

/* Hands the packets that have come to the sink. Returns their number; *isWhole: as ebpfMonRingRead has it, of all. */
unsigned ebpfMonPacketSourcesRead(ebpfMonPacketSources *sources, int *isWhole);

/* How the thread sleeps until packets of any source come: as in ring.h. */
int ebpfMonPacketSourcesFile(const ebpfMonPacketSources *sources);
int ebpfMonPacketSourcesBeginSleep(ebpfMonPacketSources *sources);
void ebpfMonPacketSourcesEndSleep(ebpfMonPacketSources *sources);

/* In namespace "netns" (0: in all): see ebpfMonPacketsPort and ebpfMonPacketsVerdict. */
void ebpfMonPacketSourcesExpectPort(ebpfMonPacketSources *sources, uint32_t netns, uint16_t port);
void ebpfMonPacketSourcesReject(ebpfMonPacketSources *sources, const struct ebpfMonPeer *connection);

void ebpfMonPacketSourcesGetState(const ebpfMonPacketSources *sources, ebpfMonPacketSourcesState *state);

#endif
