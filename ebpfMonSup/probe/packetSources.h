/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet sources (packets.h) of the network namespaces that the monitor watches: its own, and those of the IOCs.
 * Packet thread only.
 */
#ifndef EBPFMON_PACKETSOURCES_H
#define EBPFMON_PACKETSOURCES_H

#include "host/procNetns.h"
#include "probe/packets.h"

#define EBPFMON_PACKET_SOURCES_MAX 32

typedef struct ebpfMonPacketSources ebpfMonPacketSources;

typedef struct {
    unsigned count;    /* sources that are open */
    int      trouble;  /* nonzero: a namespace could not be opened */
    uint64_t passed;   /* packets that passed the filters of the open sources; it falls when a source is closed */
    uint64_t dropped;  /* packets that were lost because a ring was full, since the monitor started */
} ebpfMonPacketSourcesState;

typedef struct {
    /* Receives each packet: see ebpfMonPacketFn. "netns": inode of its network namespace. */
    void (*packet)(void *arg, uint32_t netns, const ebpfMonPacket *packet);
    /* Called when a source for another namespace than ours was opened. "pid": a process in it. */
    void (*opened)(void *arg, pid_t pid, uint32_t netns);
    void *arg;
} ebpfMonPacketSourcesSink;

/* "ringBytes": size of the ring of each source (ebpfMonPacketsOpen). "sink" is copied. NULL: no memory. */
ebpfMonPacketSources *ebpfMonPacketSourcesNew(unsigned ringBytes, const ebpfMonPacketSourcesSink *sink);
void ebpfMonPacketSourcesFree(ebpfMonPacketSources *sources);

/* Opens and closes sources, so that exactly the namespaces of "list" have one; ebpfMonProcNetnsList makes the list. A
 * namespace that cannot be opened is tried again after 30 s; the reason is logged once. "now": monotonic ns. To open
 * one takes some 25 ms of CPU time, while packets of others wait, and its user pays for it (host/foreign.h). So of
 * users that are no system users one is opened in each call. Nonzero: there are more; call it again soon. */
int ebpfMonPacketSourcesFollow(ebpfMonPacketSources *sources, const ebpfMonNetns *list, unsigned count, uint64_t now);

/* Copies the inodes of the namespaces that have a source to "netns", which has room for EBPFMON_PACKET_SOURCES_MAX.
 * Returns their number. */
unsigned ebpfMonPacketSourcesList(const ebpfMonPacketSources *sources, uint32_t *netns);

/* Since when the packets of this namespace are seen: monotonic ns; UINT64_MAX: they are not. */
uint64_t ebpfMonPacketSourcesGetSince(const ebpfMonPacketSources *sources, uint32_t netns);

/* Who pays for a namespace that has a source (host/procRead.h). */
uid_t ebpfMonPacketSourcesGetUser(const ebpfMonPacketSources *sources, uint32_t netns);

/* Nonzero: saddr of "sender" is an address of its namespace, which has a source. "now": monotonic ns. */
int ebpfMonPacketSourcesHasSender(ebpfMonPacketSources *sources, const struct ebpfMonPeer *sender, uint64_t now);

/* Passes the packets that have come to the sink. *look: of all sources together. */
void ebpfMonPacketSourcesRead(ebpfMonPacketSources *sources, ebpfMonPacketsLook *look);

/* How the packet thread sleeps until any source has packets of this kind: see ring.h. The file stays the sources'. */
int ebpfMonPacketSourcesFile(const ebpfMonPacketSources *sources);
int ebpfMonPacketSourcesBeginSleep(ebpfMonPacketSources *sources, enum ebpfMonPacketsSleep which);
void ebpfMonPacketSourcesEndSleep(ebpfMonPacketSources *sources);

/* See ebpfMonPacketsExpectPort and ebpfMonPacketsSetVerdict, for the source of namespace "netns" (of the connection's
 * "netns"); 0: for all sources. */
void ebpfMonPacketSourcesExpectPort(ebpfMonPacketSources *sources, uint32_t netns, uint16_t port);
void ebpfMonPacketSourcesReject(ebpfMonPacketSources *sources, const struct ebpfMonPeer *connection);

void ebpfMonPacketSourcesGetState(const ebpfMonPacketSources *sources, ebpfMonPacketSourcesState *state);

#endif
