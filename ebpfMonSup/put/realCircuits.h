/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which puts the sockets of this host prove. Anybody on the network can send packets that look like a connection, and
 * send packets of a real one again. Packet thread only; the kernel is asked, so no lock is held.
 */
#ifndef EBPFMON_REALCIRCUITS_H
#define EBPFMON_REALCIRCUITS_H

#include "put/packetPut.h"
#include "watch/connectionSockets.h"

typedef struct ebpfMonRealCircuits ebpfMonRealCircuits;

/* ebpfMonConnectionSocketsFind; a test has a function of its own. */
typedef int (*ebpfMonFindReceived)(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                                   ebpfMonReceived *received);

/* "find" NULL: nobody can tell, and all puts count. NULL without memory. */
ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find);
void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real); /* NULL does no harm */

/* Packets of this circuit have shown a put: asks at once, because what is known of a connection that has ended may be
 * forgotten soon. */
void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid);

/* Nonzero: the server has received this put while its connection was open, or its client has sent it; and no earlier
 * circuit of this connection may have shown it. Of a put to a server on another host nobody can tell. */
int ebpfMonRealCircuitsHas(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put);

#endif
