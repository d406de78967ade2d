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

/* What a server has received of a connection. */
typedef struct {
    int      isAll;       /* nonzero: whatever the packets show, and the next three members are not valid */
    int      hasFrom;     /* "from" is valid */
    uint32_t from, upTo;  /* TCP sequence numbers: of the first byte, and behind the last one */
    uint64_t endedAt;     /* monotonic ns when its socket was closed; 0: it was not */
} ebpfMonReceived;

/* What the kernel knows of a connection to process "pid". 1: it has, or had, a socket. 0: there is no such connection,
 * and there was none. -1: it does not tell. */
typedef int (*ebpfMonFindReceived)(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                                   pid_t pid, ebpfMonReceived *received);

/* "find" NULL: nobody can tell. NULL without memory. */
ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find, void *arg);
void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real); /* NULL does no harm */

/* Packets of this circuit have shown a put: asks at once, because the connection may end soon. */
void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid);

/* Nonzero: its server has received this put, or nobody can tell. */
int ebpfMonRealCircuitsHas(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put);

#endif
