/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections, as the kernel part knows them: who opened one, and whether a watched IOC has served it. Any thread. */
#ifndef EBPFMON_KERNELOWNERS_H
#define EBPFMON_KERNELOWNERS_H

#include <stdint.h>

#include "ebpfMonTable.h"

/* The process that opened a connection. "first": without it (NULL), only a client in namespace peer->netns is found.
 * Returns the namespace of its socket; 0: it is not known. */
uint32_t ebpfMonKernelGetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwner *owner);
/* Nonzero: a watched IOC has received data of this connection. "first": also the first sequence numbers agree (NULL:
 * they are not known). "seq": the data reach beyond this number (NULL: any data). */
int ebpfMonKernelIsServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, const uint32_t *seq);
/* Nonzero: a server of this host had received data of this connection, which has ended; up to this sequence number.
 * "first": NULL or zeros: not known. Clients of this host are not in the table. */
int ebpfMonKernelWasServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, uint32_t *upTo);
/* "peer": with the namespace of the client's socket. 0, or -1: the table has no room. */
int ebpfMonKernelSetOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner);

#endif
