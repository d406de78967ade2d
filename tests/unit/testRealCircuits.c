/* SPDX-License-Identifier: BSD-3-Clause */
/* put/realCircuits.h, watch/connectionSockets.h: which puts the sockets of this host prove. */
#include <unistd.h>

#include <epicsUnitTest.h>
#include <testMain.h>

#include "host/tcpSockets.h"
#include "probe/kernelTables.h"
#include "put/realCircuits.h"

#define FIRST 0xffffffc0u /* sequence numbers wrap after 64 bytes */

static int known = 1;
static ebpfMonReceived received;
static unsigned asked;

static int find(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first, pid_t pid, ebpfMonReceived *found)
{
    asked++;
    *found = received;
    return known;
}

/* The kernel has received so many bytes since its first number. */
static void setReceived(uint32_t first, uint32_t bytes, uint64_t endedAt)
{
    known = 1;
    received = (ebpfMonReceived){ .first = { { first, 1 } }, .hasUpTo = 1, .upTo = first + bytes, .window = bytes,
                                  .endedAt = endedAt };
}

/* A put of 10 bytes from this number on. */
static int has(ebpfMonRealCircuits *real, uint16_t port, uint64_t circuit, uint32_t first, uint32_t seq)
{
    const ebpfMonPacketPut put = { .peer = { .addr = 1, .port = port }, .circuit = circuit,
                                   .first = { { first, !!first } }, .seq = seq, .end = seq + 10, .pid = getpid(),
                                   .at = 50000000 };

    return ebpfMonRealCircuitsJudge(real, &put) == ebpfMonRealYes;
}

static void note(ebpfMonRealCircuits *real, uint16_t port, uint64_t circuit, uint32_t seq)
{
    const struct ebpfMonPeer peer = { .addr = 1, .port = port };
    const struct ebpfMonFirst first = { { seq, !!seq } };

    ebpfMonRealCircuitsNote(real, circuit, &peer, &first, getpid(), seq, 0);
}

static void testOpen(ebpfMonRealCircuits *real)
{
    known = 0;
    testOk(!has(real, 1, 1, FIRST, FIRST + 10), "no socket has this connection");
    setReceived(FIRST, 100, 0);
    testOk(has(real, 1, 1, FIRST, FIRST + 10), "now one has");
    asked = 0;
    testOk(has(real, 1, 1, FIRST, FIRST + 90) && asked == 0, "what is known is not asked again; numbers wrap");
    testOk(!has(real, 1, 1, FIRST, FIRST + 91) && asked == 1, "its last byte was not received");
    setReceived(FIRST, 200, 0);
    testOk(has(real, 1, 1, FIRST, FIRST + 91), "now it was");
    testOk(!has(real, 1, 1, FIRST, FIRST - 11) && !has(real, 1, 1, FIRST, FIRST + 0x80000000u),
           "before its first byte, and far away");
    testOk(!has(real, 1, 1, FIRST + 1, FIRST + 10), "other first numbers");
    known = 0;
    testOk(has(real, 1, 1, FIRST, FIRST + 180) && !has(real, 1, 1, FIRST, FIRST + 200),
           "nothing is known of its end: what was known before counts");
    received = (ebpfMonReceived){ .hasUpTo = 0 };
    known = 1;
    testOk(has(real, 2, 2, 0, 12345), "nobody tells how much was received");
}

static void testEnded(ebpfMonRealCircuits *real)
{
    setReceived(FIRST, 100, 10000000);
    note(real, 3, 3, FIRST);
    testOk(!has(real, 3, 3, FIRST, FIRST + 50), "a packet that came when its socket was closed");
    setReceived(FIRST, 100, 60000000);
    testOk(has(real, 3, 3, FIRST, FIRST + 50), "it was not");
}

/* A client has sent a RST before its last bytes were acknowledged, and the server's socket has not got that yet. */
static void testReset(ebpfMonRealCircuits *real)
{
    ebpfMonPacketPut put = { .peer = { .addr = 1, .port = 8 }, .circuit = 40, .first = { { 500, 1 } }, .seq = 590,
                             .end = 610, .pid = getpid(), .at = 50000000 };

    setReceived(500, 100, 60000000);
    testOk(ebpfMonRealCircuitsJudge(real, &put) == ebpfMonRealLater, "its client was not told of the last bytes");
    setReceived(500, 110, 60000000);
    testOk(ebpfMonRealCircuitsJudge(real, &put) == ebpfMonRealYes, "the server does");
    put.at = 70000000;
    put.end = 611;
    testOk(ebpfMonRealCircuitsJudge(real, &put) == ebpfMonRealNo, "a packet behind the end");
}

static void testAgain(ebpfMonRealCircuits *real)
{
    setReceived(FIRST, 100, 0);
    note(real, 4, 10, FIRST);
    testOk1(has(real, 4, 10, FIRST, FIRST + 20) && has(real, 4, 10, FIRST, FIRST + 80));
    setReceived(FIRST, 200, 0);
    testOk(!has(real, 4, 11, 0, FIRST + 80) && !has(real, 4, 11, 0, FIRST + 20),
           "another circuit of the same connection shows them again");
    testOk(has(real, 4, 11, 0, FIRST + 100), "and one that was not received then");
    testOk(has(real, 4, 10, FIRST, FIRST + 85), "a put of the first circuit, which waited");
    setReceived(5000, 30, 0);
    note(real, 4, 12, 5000);
    testOk(has(real, 4, 12, 5000, 5010), "another connection from the same port");
}

/* A port is used again before the puts of the first connection are judged. The kernel tells of each by its numbers;
 * without them, of the last one. */
static void testReused(ebpfMonRealCircuits *real)
{
    const ebpfMonPacketPut unseen = { .peer = { .addr = 1, .port = 7 }, .circuit = 30, .seq = 1000, .end = 1010,
                                      .pid = getpid(), .at = 50000000 };

    setReceived(9000, 100, 0);
    testOk(ebpfMonRealCircuitsJudge(real, &unseen) == ebpfMonRealPerhaps,
           "a connection whose begin was not seen, before the one that the kernel knows");
    testOk(has(real, 7, 31, 9000, 9020), "… and it takes nothing from that one");
    setReceived(2000, 50, 60000000);
    note(real, 6, 21, 2000);
    setReceived(9000, 100, 0);
    note(real, 6, 22, 9000);
    asked = 0;
    testOk(has(real, 6, 21, 2000, 2010) && has(real, 6, 22, 9000, 9010) && has(real, 6, 21, 2000, 2040) && asked == 0,
           "two connections with the same ends, alternately");
    testOk(!has(real, 6, 21, 2000, 2041), "more than the first one has received");
}

/* At an IOC: its own connection is known from its begin. Somebody makes another one with its numbers, or one that is
 * met in the middle, after others with other numbers. */
static void testSeen(ebpfMonRealCircuits *real)
{
    const struct ebpfMonPeer peer = { .addr = 1, .port = 9 }, other = { .addr = 1, .port = 11 };
    const struct ebpfMonFirst first = { { 3000, 1 } }, none = { { 0, 0 } };

    setReceived(3000, 20, 0);
    ebpfMonRealCircuitsNote(real, 50, &peer, &first, getpid(), 3000, 1);
    known = 0;
    has(real, 9, 51, 77777, 77800);
    setReceived(3000, 90, 0);
    ebpfMonRealCircuitsNote(real, 52, &peer, &none, getpid(), 3040, 1);
    testOk(!has(real, 9, 52, 0, 3050), "a copy of what was received before");
    setReceived(3000, 120, 0);
    testOk(has(real, 9, 52, 0, 3095), "what was received then");
    ebpfMonRealCircuitsNote(real, 53, &peer, &first, getpid(), 3000, 1);
    testOk(!has(real, 9, 53, 3000, 3095), "the same numbers again");

    setReceived(3000, 0, 0);
    received.hasUpTo = 0;
    ebpfMonRealCircuitsNote(real, 60, &other, &first, getpid(), 3000, 1);
    setReceived(3000, 90, 0);
    ebpfMonRealCircuitsNote(real, 61, &other, &none, getpid(), 3040, 1);
    testOk(!has(real, 11, 61, 0, 3050), "a copy; how much was received was not known at first");
    setReceived(3000, 120, 0);
    testOk(has(real, 11, 61, 0, 3095), "what was received then");
}

/* Forged connections do not displace what is known of a real one. */
static void testFlood(ebpfMonRealCircuits *real)
{
    setReceived(FIRST, 100, 0);
    testOk1(has(real, 5, 20, FIRST, FIRST + 20));
    known = 0;
    for (unsigned i = 0; i < 60000; i++)
        has(real, (uint16_t)(1000 + i), 100 + i, 7, 8);
    setReceived(FIRST, 200, 0);
    testOk(!has(real, 5, 100000, 0, FIRST + 20), "60000 forged connections later it is still known");
}

/* What the kernel part and sock_diag(7) tell of the connection of a server, in place of probe/kernelTables.c and
 * host/tcpSockets.c. */
static int isAccepted, socketStatus, endsMeanwhile;
static uint64_t closedAt;
static const struct ebpfMonFirst accepted = { { 5000, 1 } };

int ebpfMonKernelIsAccepted(const struct ebpfMonPeer *peer, struct ebpfMonFirst *first)
{
    if (isAccepted)
        *first = accepted;
    return isAccepted;
}

int ebpfMonKernelWasServed(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                           struct ebpfMonServed *served)
{
    *served = (struct ebpfMonServed){ .first = accepted, .upTo = 5100, .endedAt = closedAt };
    return closedAt != 0;
}

uint32_t ebpfMonKernelGetOwned(const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first,
                               struct ebpfMonOwned *own)
{
    return 0;
}

int ebpfMonKernelMayMissAccepted(void)
{
    return 0;
}

int ebpfMonTcpBytesFindReceived(pid_t pid, const struct ebpfMonPeer *peer, uint64_t *bytes)
{
    *bytes = socketStatus > 0 ? 60 : UINT64_MAX;
    if (endsMeanwhile) {
        isAccepted = 0;
        closedAt = 7;
    }
    return socketStatus;
}

/* Somebody sends a packet with the ends of a connection, which begins or ends while the kernel is asked. */
static void testSockets(void)
{
    const struct ebpfMonPeer peer = { .addr = 1, .port = 10, .saddr = 2, .sport = 3 };
    const struct ebpfMonFirst none = { { 0, 0 } };
    ebpfMonReceived found;

    isAccepted = socketStatus = 1;
    testOk(ebpfMonConnectionSocketsFind(&peer, &none, getpid(), &found) && found.upTo == 5060 && found.window == 60,
           "it is open: what its socket has received");
    socketStatus = 0;
    testOk(ebpfMonConnectionSocketsFind(&peer, &none, getpid(), &found) && found.hasUpTo && !found.window,
           "it has no socket yet: nothing was received");
    endsMeanwhile = 1;
    testOk(ebpfMonConnectionSocketsFind(&peer, &none, getpid(), &found) && found.endedAt == 7 && found.upTo == 5100,
           "its socket is closed just then: the end was noted");
    closedAt = 0;
    socketStatus = 1;
    testOk(ebpfMonConnectionSocketsFind(&peer, &none, getpid(), &found) && found.endedAt == 7 && found.upTo == 5100,
           "between the notes of the kernel part, and the socket is there still");
}

MAIN(testRealCircuits)
{
    ebpfMonRealCircuits *real = ebpfMonRealCircuitsNew(find), *blind = ebpfMonRealCircuitsNew(NULL);
    const ebpfMonPacketPut elsewhere = { .circuit = 3 };

    testPlan(35);
    testOpen(real);
    testEnded(real);
    testReset(real);
    testAgain(real);
    testReused(real);
    testSeen(real);
    testFlood(real);
    testSockets();
    testOk(has(blind, 1, 1, 1, 1) && ebpfMonRealCircuitsJudge(real, &elsewhere) == ebpfMonRealYes, "nobody can tell");
    ebpfMonRealCircuitsFree(real);
    ebpfMonRealCircuitsFree(blind);
    return testDone();
}
