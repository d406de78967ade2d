/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which puts the sockets of this host prove. Anybody on the network can send packets that look like a connection, and
 * send packets of a real one again. Packet thread only; the kernel is asked, so no lock is held.
 */
#ifndef EBPFMON_REALCIRCUITS_H
#define EBPFMON_REALCIRCUITS_H

#include <stdint.h>
#include <sys/types.h>

#include "put/finishedPut.h"
#include "watch/connectionSockets.h"

typedef struct ebpfMonRealCircuits ebpfMonRealCircuits;

typedef enum {
    ebpfMonRealNo,
    ebpfMonRealYes,
    ebpfMonRealPerhaps, /* the begin of its connection was not seen, and a later one has the same ends */
    ebpfMonRealDoubtful, /* it should have been seen inside, and nothing shows that it is a put */
    ebpfMonRealLater,   /* its connection has not received it yet, as far as is known */
} ebpfMonReal;

/* ebpfMonConnectionSocketsFind; a test has a function of its own. */
typedef int (*ebpfMonFindReceived)(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                                   ebpfMonReceived *received);

/* "find" NULL: nobody can tell, and all puts count. NULL without memory. */
ebpfMonRealCircuits *ebpfMonRealCircuitsNew(ebpfMonFindReceived find);
void ebpfMonRealCircuitsFree(ebpfMonRealCircuits *real); /* NULL does no harm */

/* Packets of this circuit have shown a put, with this TCP sequence number: asks at once, because what is known of a
 * connection that has ended may be forgotten soon. "isSeen": it has only begun, and its server is an IOC that tells of
 * its puts. So what had been received before another circuit of this connection began was served, and packets of it are
 * copies. */
void ebpfMonRealCircuitsNote(ebpfMonRealCircuits *real, uint64_t circuit, const struct ebpfMonPeer *peer,
                             const struct ebpfMonFirst *first, pid_t pid, uint32_t seq, int isSeen);

/* Yes: the server has received this put while its connection was open, or its client has sent it; and no earlier
 * circuit of this connection may have shown it. Of a put to a server on another host nobody can tell: yes. */
ebpfMonReal ebpfMonRealCircuitsJudge(ebpfMonRealCircuits *real, const ebpfMonPacketPut *put);

#endif
