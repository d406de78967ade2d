/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes puts in packets and in an IOC for the tests of the join. Times are invented. */
#ifndef EBPFMON_JOINTEST_H
#define EBPFMON_JOINTEST_H

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "put/putJoin.h"

#define MS     1000000ull
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)
#define IOC    7 /* a watched IOC */
#define RECEIVED 199 /* bytes that a thread received last */

static ebpfMonPutJoin *join;
static uint64_t now = 1000 * SECOND;
static uint64_t ids;
static const ebpfMonOldValue noOld;

/* A circuit of its own for each test. */
static inline struct ebpfMonPeer makeCircuit(unsigned n)
{
    return (struct ebpfMonPeer){ .addr = htonl(0x0a000000u + n), .saddr = htonl(0x0a640001), .sport = htons(5064),
                                 .port = htons((uint16_t)(20000 + n % 40000)) };
}

static double sent;       /* 0: not a number */
static pid_t server;      /* its process; 0: not known */
static uint32_t stretch;  /* sequence number of the next message */

static inline uint64_t addMessage(struct ebpfMonPeer peer, uint32_t seq, uint32_t end, const char *name,
                           ebpfMonWireProtocol protocol, int reply, uint32_t iocId)
{
    ebpfMonWireEvent ev = {
        .kind = ebpfMonWirePut,
        .protocol = protocol,
        .peer = peer,
        .seq = seq,
        .end = end,
        .circuit = 1,
        .stretch = stretch,
        .id = ++ids,
        .user = "packet",
        .host = "packethost",
        .name = name,
        .replyAsked = reply,
        .text = "1",
        .data = (const uint8_t *)"1",
        .have = 1,
        .count = 1,
        .hash = 42,
        .isNumber = sent != 0,
        .number = sent,
    };

    ebpfMonPutJoinAddPacket(join, &ev, iocId, server, &noOld, now);
    return ids;
}

static inline uint64_t addWrite(struct ebpfMonPeer peer, uint32_t seq, const char *name)
{
    return addMessage(peer, seq, seq + 24, name, ebpfMonWireCa, 0, IOC);
}

static inline void addReply(struct ebpfMonPeer peer, uint64_t id, int ok)
{
    ebpfMonWireEvent ev = { .kind = ebpfMonWireReply, .peer = peer, .id = id, .ok = ok, .denied = !ok, .message = "" };

    ebpfMonOldValue old;

    ebpfMonPutJoinAddReply(join, &ev, &old, now);
}

static inline ebpfMonPut makePut(const char *pv)
{
    ebpfMonPut put;

    memset(&put, 0, sizeof(put));
    snprintf(put.pv, sizeof(put.pv), "%s", pv);
    strcpy(put.peer, "10.0.0.1:1");
    strcpy(put.user, "ioc");
    put.seen = EBPFMON_SEEN_INSIDE;
    put.isNumber = sent != 0;
    put.number = sent;
    return put;
}

static uint32_t lastSeq; /* sequence number of its message */
static ebpfMonPut last; /* the put of the last match(), as the join changed it */

static inline ebpfMonPutJoinResult matchKind(struct ebpfMonPeer peer, uint32_t seq, int kind, const char *pv, int final)
{
    ebpfMonMessageKey key = {.peer = peer, .seq = seq, .seqFrom = seq - RECEIVED, .seqKind = (uint8_t)kind, .at = now};
    ebpfMonPutJoinResult r;

    last = makePut(pv);
    if (kind == EBPFMON_SEQ_RECEIVED)
        last.through = ebpfMonByPva;
    r = ebpfMonPutJoinMatchIoc(join, &key, &last, final);
    lastSeq = key.seq;
    if (key.moved)
        snprintf(last.message, sizeof(last.message), "moved to %u", ntohl(key.peer.addr) & 0xffffff);
    return r;
}

static inline ebpfMonPutJoinResult match(struct ebpfMonPeer peer, uint32_t seq, const char *pv, int final)
{
    return matchKind(peer, seq, EBPFMON_SEQ_MESSAGE, pv, final);
}

/* countUnmatched returns the number of puts in packets that were not seen in the IOC, and sets these two from the
 * last one. */
static int lastPassed, lastClosed;
static uint64_t eventsStop; /* events of the IOC after this time are not read yet; 0: all are read */

static unsigned doubtful; /* … and the number of those that nothing shows to be puts */

static inline unsigned freeUnmatched(ebpfMonPacketPut *list)
{
    ebpfMonPacketPut *next;
    unsigned n = 0;

    for (; list; list = next) {
        next = list->next;
        n += !list->isDoubtful;
        doubtful += list->isDoubtful;
        lastPassed = list->passed;
        lastClosed = list->closed;
        ebpfMonPutJoinSettleTaken(join, list, 1);
        free(list);
    }
    return n;
}

/* The server has always read all that came. */
static inline unsigned countUnmatched(void)
{
    struct ebpfMonPeer peer;
    uint32_t iocId;
    unsigned n;

    ebpfMonPutJoinSetEventsRead(join, eventsStop ? eventsStop : now);
    n = freeUnmatched(ebpfMonPutJoinTakeUnmatched(join, now));
    while (ebpfMonPutJoinGetAsked(join, now, &peer, &iocId))
        ebpfMonPutJoinSetRead(join, &peer, 1, now);
    return n + freeUnmatched(ebpfMonPutJoinTakeUnmatched(join, now));
}

static inline unsigned countUnmatchedAfter(uint64_t time)
{
    now += time;
    return countUnmatched();
}

#endif
