/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/procNetns.h"
#include "host/tcpSockets.h"
#include "probe/kernelTables.h"
#include "watch/connectionSockets.h"

#define WINDOW_MAX (1u << 31) /* half of all sequence numbers: what is further away is ahead */

static void setUpTo(ebpfMonReceived *received, uint32_t upTo, uint64_t bytes)
{
    received->hasUpTo = 1;
    received->upTo = upTo;
    received->window = bytes < WINDOW_MAX ? (uint32_t)bytes : WINDOW_MAX;
}

/* How much has come is not known of a connection that is older than the monitor: any of the last 2^31 bytes. */
static void setEnd(ebpfMonReceived *received, uint32_t upTo, uint64_t endedAt)
{
    setUpTo(received, upTo, ebpfMonFirstIsKnown(&received->first) ? upTo - received->first.seq[0] : WINDOW_MAX);
    received->endedAt = endedAt;
}

/* Nonzero: the server's socket has noted the end of a connection with these numbers. */
static int findEnded(const struct ebpfMonPeer *inside, const struct ebpfMonFirst *first, ebpfMonReceived *received)
{
    struct ebpfMonServed served;

    if (!ebpfMonKernelWasServed(inside, first, &served))
        return 0;
    received->first = served.first;
    setEnd(received, served.upTo, served.endedAt);
    return 1;
}

/* 1: the kernel part has noted this connection; 2: that of its server. -1: it has noted another one with the same ends,
 * which is open. 0: none. A server's socket tells more than that of its client. */
static int findNoted(const struct ebpfMonPeer *peer, const struct ebpfMonPeer *inside, const struct ebpfMonFirst *first,
                     ebpfMonReceived *received)
{
    struct ebpfMonOwned own = { .ended = 0 };
    int isAccepted, isOwned, isOther;

    *received = (ebpfMonReceived){ .hasUpTo = 0 };
    isAccepted = ebpfMonKernelIsAccepted(inside, &received->first);
    isOwned = !isAccepted && ebpfMonKernelGetOwned(peer, ebpfMonFirstIsKnown(first) ? first : NULL, &own);
    isOther = isAccepted ? !ebpfMonFirstMayBeSame(&received->first, first) :
              !isOwned && ebpfMonKernelGetOwned(peer, NULL, &own);

    if (isAccepted && !isOther)
        return 2;
    received->first = (struct ebpfMonFirst){ .seq = { 0 } };
    if (findEnded(inside, isOwned && ebpfMonFirstIsKnown(&own.first) ? &own.first : first, received))
        return 1;
    if (!isOwned)
        return isOther && !own.endedAt ? -1 : 0;
    received->first = own.first;
    if (own.endedAt)
        setEnd(received, own.upTo, own.endedAt);
    return 1;
}

/* Nonzero: the server has this socket now; -1: nobody can tell. *bytes: what it has received. */
static int hasSocket(const struct ebpfMonPeer *peer, pid_t pid, uint64_t *bytes)
{
    int status = pid ? ebpfMonTcpBytesFindReceived(pid, peer, bytes) : 0;

    return status > 0 ? *bytes != UINT64_MAX : status;
}

/* Of a connection that is older than the monitor. Of loopback the kernel part knows clients only, and one may have been
 * translated. */
static int isOlder(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    return !ebpfMonFirstIsKnown(first) || ebpfMonIsLoopback(peer->addr, peer->addr6) || ebpfMonKernelMayMissAccepted();
}

int ebpfMonConnectionSocketsFind(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid,
                                 ebpfMonReceived *received)
{
    uint32_t netns = pid ? ebpfMonProcNetns(pid) : 0; /* packets to a container are also seen in other namespaces */
    struct ebpfMonPeer inside = *peer;
    ebpfMonReceived now;
    uint64_t bytes;
    int noted, has;

    if (netns)
        inside.netns = netns;
    noted = findNoted(peer, &inside, first, received);
    if (received->endedAt || noted < 0)
        return noted > 0;
    has = hasSocket(peer, pid, &bytes);
    /* the kernel part notes the end of a connection before its socket is gone */
    if (findNoted(peer, &inside, first, &now) > 0 && now.endedAt) {
        *received = now;
        return 1;
    }
    if (has <= 0) {
        if (!has && noted == 2)
            setUpTo(received, received->first.seq[0], 0); /* it has begun or ended just now */
        return noted > 0;
    }
    if (!noted && !isOlder(peer, first))
        return 0;
    if (!ebpfMonFirstIsKnown(&received->first))
        received->first = *first;
    if (ebpfMonFirstIsKnown(&received->first))
        setUpTo(received, received->first.seq[0] + (uint32_t)bytes, bytes);
    return 1;
}
