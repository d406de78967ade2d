/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes wire events of the packets of all network namespaces in which an IOC is watched, and of our own namespace.
 * Packet thread only. The caller holds no lock, because /proc is read.
 */
#ifndef EBPFMON_PACKETREADER_H
#define EBPFMON_PACKETREADER_H

#include <stdint.h>
#include <sys/types.h>

#include "ebpfMonTable.h"
#include "host/procNetns.h"
#include "model/published.h"
#include "probe/packetSources.h"
#include "watch/target.h"
#include "wire/wireEvent.h"

/* --- owners of older connections ---
 *
 * Which process opened each connection that is older than the monitor. This is read once, from /proc and sock_diag(7).
 * For later connections the kernel part notes the process when the connection is made. */

/* Notes who opened a connection: ebpfMonKernelSetOwner. */
typedef int (*ebpfMonConnectionOwnersSet)(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);

/* Calls "set" for each connection in the network namespace of process "pid" (0: ours) whose owner is found. "netns":
 * inode of that namespace. Takes as long as a look at all files of all processes, so no lock may be held. */
void ebpfMonConnectionOwnersRead(pid_t pid, uint32_t netns, ebpfMonConnectionOwnersSet set);

/* A client of this IOC has connected over TLS. Packet thread only; it takes the lock of the targets. */
void ebpfMonPacketTlsNote(ebpfMonTargets *targets, uint32_t iocId);

/* --- what IOCs pay for packets ---
 *
 * What IOCs pay for the packets that their servers send: our program in the kernel looks at each of them, and copies
 * it, while the thread of the IOC sends it. Packets that an IOC receives are paid by whoever sends them. No level
 * changes this, so the budget does not count it. Packet thread only; it takes the lock of the targets. */

/* The program took "ns" from this IOC (ebpfMonPacket.took). An IOC that has been forgotten pays nothing. */
void ebpfMonPacketCostAdd(ebpfMonTargets *targets, uint32_t iocId, uint64_t ns);

/* "seconds" have passed since the last call: the costs of all IOCs are those of the last ten seconds or so, because few
 * packets are measured. */
void ebpfMonPacketCostTick(ebpfMonTargets *targets, double seconds);

/* --- the reader --- */

typedef struct ebpfMonPacketReader ebpfMonPacketReader;

typedef struct {
    ebpfMonWireSink event;
    /* The packets of these namespaces (inodes) are read. Called before their packet sources are opened, because packets
     * will show a put that is made meanwhile; and again with the namespaces whose sources could be opened. "since":
     * monotonic ns for each; UINT64_MAX: it is not open yet. */
    void (*covers)(void *arg, const uint32_t *netns, const uint64_t *since, unsigned count);
    ebpfMonConnectionOwnersSet setOwner; /* called for each connection that already exists in another namespace */
    /* Our program took "ns" from a server of this host that sent packets (saddr, sport, netns of "server"). */
    void (*took)(void *arg, const struct ebpfMonPeer *server, uint64_t ns);
    /* A TCP packet that no host accepts was left out: its checksum is wrong, or it came from outside with an address of
     * this host as its source. */
    void (*refused)(void *arg, int hasWrongSum);
    /* A packet of which all events were told. NULL: not wanted. */
    void (*packet)(void *arg, uint32_t netns, const ebpfMonPacket *packet);
    /* The user whose socket is the client of this connection, which is in our own namespace or in one that root has
     * made. -1: not known, or on another host. */
    int64_t (*findUser)(void *arg, const struct ebpfMonPeer *peer);
    /* Nonzero: a socket of this host has this connection now (connectionSockets.h). */
    int (*isReal)(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first);
    void *arg;              /* of all but setOwner */
} ebpfMonPacketReaderSink;

/* "ringBytes": of the packet ring of each namespace. The targets stay the caller's, "sink" is copied. NULL without
 * memory. */
ebpfMonPacketReader *ebpfMonPacketReaderNew(ebpfMonTargets *targets, unsigned ringBytes,
                                            const ebpfMonPacketReaderSink *sink);
void ebpfMonPacketReaderFree(ebpfMonPacketReader *reader); /* NULL does no harm */

/* Opens and closes packet sources. Call it when IOCs came or went, and every few seconds. "now": monotonic ns. Nonzero:
 * more are to be opened; call it again soon. */
int ebpfMonPacketReaderFollow(ebpfMonPacketReader *reader, uint64_t now);

/* What a look found. */
typedef struct {
    unsigned packets;
    unsigned others;   /* of all, without beacons: servers send them for ever */
    unsigned expected; /* nonzero: more will come at once, so look again soon */
    int      isWhole;  /* as ebpfMonRingRead sets it */
} ebpfMonPacketReaderLook;

/* Reads the packets that have come, and gives their events to the sink. */
void ebpfMonPacketReaderRead(ebpfMonPacketReader *reader, ebpfMonPacketReaderLook *look);

/* Nonzero: a put that has begun may end with a packet of any kind: a part of it, or of what was sent before it, is
 * missing. */
int  ebpfMonPacketReaderAwaitsAny(const ebpfMonPacketReader *reader);

/* To sleep until packets of this kind come: see packetSources.h. */
int  ebpfMonPacketReaderGetFile(const ebpfMonPacketReader *reader);
int  ebpfMonPacketReaderBeginSleep(ebpfMonPacketReader *reader, enum ebpfMonPacketsSleep which);
void ebpfMonPacketReaderEndSleep(ebpfMonPacketReader *reader);

/* A server listens there: see ebpfMonPacketsExpectPort. "netns" 0: in all. */
void ebpfMonPacketReaderExpectPort(ebpfMonPacketReader *reader, uint32_t netns, uint16_t port);

/* Once a second: makes events of messages that waited too long, and fills *values, which is to be published. "seconds":
 * since the last call. */
void ebpfMonPacketReaderTick(ebpfMonPacketReader *reader, double seconds, ebpfMonPacketValues *values);

#endif
