/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The servers of this host in which no records of EPICS Base were found (put/putRoom.h), and the names of the PVs
 * that they have told clients about. Packets show only PVs that somebody uses, so the names are never complete.
 *
 * The packet thread writes, the thread of RecSync reads; a lock of its own makes both safe. Names are kept only while
 * somebody wants them: RecSync, if it is to send them.
 */
#ifndef EBPFMON_PACKETSERVERS_H
#define EBPFMON_PACKETSERVERS_H

#include <stdint.h>
#include <sys/types.h>

#include "model/put.h"

#define EBPFMON_PACKET_SERVERS 64    /* at most */
#define EBPFMON_PACKET_PVS     20000 /* of one server, at most; more are left out */

typedef struct {
    pid_t    pid;
    uint64_t start;     /* with the pid its identity */
    uint32_t id;        /* never used twice, and never the id of an IOC; set by this module */
    uint16_t caPort, pvaPort; /* host order; 0: it does not serve this protocol */
    char     name[EBPFMON_NAME_SIZE];
    int      isListed;  /* …Copy has it; 0: it is kept, because it may be listed soon */
    unsigned pvs;       /* names that are known */
} ebpfMonPacketServer;

typedef struct ebpfMonPacketServers ebpfMonPacketServers;

ebpfMonPacketServers *ebpfMonPacketServersNew(void); /* NULL without memory */
void ebpfMonPacketServersFree(ebpfMonPacketServers *servers); /* only while no thread uses them; NULL does no harm */

/* Called when a server came or went, by the thread that reports it; it must not wait. Set it before other threads
 * run. */
void ebpfMonPacketServersSetListener(ebpfMonPacketServers *servers, void (*changed)(void *arg), void *arg);

/* Nonzero: names are kept from now on. 0: they are dropped. Any thread. */
void ebpfMonPacketServersWantPvs(ebpfMonPacketServers *servers, int want);

/* This server (pid and start) has told a client that it has this PV. A new server is not listed before SetList says so.
 * A name is ignored if it is empty, longer than 250 bytes, or not clean (common/text.h). Packet thread. */
void ebpfMonPacketServersAddPv(ebpfMonPacketServers *servers, pid_t pid, uint64_t start, const char *pv);

/* These are known from now on; each of the others is forgotten with its names. Members "id" and "pvs" need not be set.
 * Packet thread. */
void ebpfMonPacketServersSetList(ebpfMonPacketServers *servers, const ebpfMonPacketServer *list, unsigned count);

/* Copies those that are listed: at most EBPFMON_PACKET_SERVERS. Returns their number. Any thread. */
unsigned ebpfMonPacketServersCopy(ebpfMonPacketServers *servers, ebpfMonPacketServer *list);

/* Returns the names of this server, "*count" of them, one after the other with their terminators; the caller frees
 * them. NULL: there are none, or no memory. Any thread. */
char *ebpfMonPacketServersCopyPvs(ebpfMonPacketServers *servers, uint32_t id, unsigned *count);

#endif
