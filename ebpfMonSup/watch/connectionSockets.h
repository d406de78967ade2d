/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the sockets of this host tell of a connection that was seen in packets. Anybody can send packets; only sockets
 * prove that there is such a connection, and how much of it was received. The kernel part notes both when a connection
 * begins and when it ends, and sock_diag(7) counts the bytes meanwhile. Packet thread only; the kernel is asked, so no
 * lock is held.
 */
#ifndef EBPFMON_CONNECTIONSOCKETS_H
#define EBPFMON_CONNECTIONSOCKETS_H

#include <sys/types.h>

#include "ebpfMonEvent.h"

static inline int ebpfMonFirstIsKnown(const struct ebpfMonFirst *first)
{
    return first->seq[0] || first->seq[1];
}

/* Not known is no contradiction. */
static inline int ebpfMonFirstMayBeSame(const struct ebpfMonFirst *a, const struct ebpfMonFirst *b)
{
    return !ebpfMonFirstIsKnown(a) || !ebpfMonFirstIsKnown(b) || ebpfMonFirstIsSame(a, b);
}

typedef struct {
    struct ebpfMonFirst first; /* as the sockets say; zeros: not known */
    int      hasUpTo;   /* the next two members are valid; else nobody tells how much was received */
    uint32_t upTo;      /* TCP sequence number behind the last byte that the server received */
    uint32_t window;    /* so many bytes before it were received, or more */
    uint64_t endedAt;   /* monotonic ns when the first of its sockets was closed; 0: it is open */
} ebpfMonReceived;

/* "first": as the packets say; zeros: not known. "pid": the server; 0: it is not on this host, and its client must be.
 * 1: the connection has, or had, a socket. 0: there is no such connection, or nobody can tell. */
int ebpfMonConnectionSocketsFind(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                                 ebpfMonReceived *received);

#endif
