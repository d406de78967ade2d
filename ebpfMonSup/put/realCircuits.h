/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which circuits the kernel knows. Anybody on the network can send packets that look like a connection to a server of
 * this host. If the server is not seen inside, they prove a put only if a socket has received it, or if its client's
 * socket is on this host. Packet thread only; the kernel is asked, so no lock is held.
 */
#ifndef EBPFMON_REALCIRCUITS_H
#define EBPFMON_REALCIRCUITS_H

#include <sys/types.h>

#include "put/packetPut.h"

typedef struct ebpfMonRealCircuits ebpfMonRealCircuits;

/* What the kernel knows of a connection to process "pid". 1: the server has, or had, received data up to *upTo, a
 * sequence number; *isAll: whatever the packets show. 0: there is no such connection, and there was none. -1: it does
 * not tell. */
typedef int (*ebpfMonFindReceived)(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                                   pid_t pid, uint32_t *upTo, int *isAll);

/* "find" NULL: nobody can tell. NULL without memory. */
ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find, void *arg);
void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real); /* NULL does no harm */

/* Packets of this circuit have shown a put: asks at once, because the connection may end soon. */
void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid);

/* Nonzero: its server has received this put, or nobody can tell. */
int ebpfMonRealCircuitsHas(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put);

#endif
