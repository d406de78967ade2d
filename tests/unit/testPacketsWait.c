/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets wake a reader that sleeps (bpf/wire/wireWaits.bpf.h): real traffic in a network namespace of this
 * program. */
#include <testMain.h>

#include "packetNet.h"

#define CA_SERVER  5064
#define PVA_SERVER 5075
#define SHORT_MS   20 /* to see that nothing comes */

static int rings;

/* Sleeps as "which" says, sends, and returns whether that woke the reader. Reads the packets. */
static int wakesReader(const Pair *pair, int from, const void *data, size_t size, enum ebpfMonPacketsSleep which,
                       int isExpected)
{
    ebpfMonRing *ring = ebpfMonPacketsGetRing(source);
    struct pollfd wait = { .fd = rings, .events = POLLIN };
    ebpfMonPacketsLook look = { .isWhole = 0 };
    int woken;

    do {
        ebpfMonPacketsRead(source, packet, NULL, &look);
        ebpfMonRingsClear(rings);
    } while (!ebpfMonRingBeginSleep(ring, which));
    pairSend(pair, from, data, size);
    woken = poll(&wait, 1, isExpected ? 5000 : SHORT_MS);
    ebpfMonRingEndSleep(ring);
    ebpfMonPacketsRead(source, packet, NULL, &look);
    if (look.packets != 1 || (look.urgent != 0) != (isExpected && which == EBPFMON_PACKETS_URGENT))
        testDiag("%u packets, %u of them urgent", look.packets, look.urgent);
    return woken == 1 && look.packets == 1;
}

static int isUrgent(const Pair *pair, int from, const void *data, size_t size)
{
    return wakesReader(pair, from, data, size, EBPFMON_PACKETS_URGENT, 1);
}

static int canWait(const Pair *pair, int from, const void *data, size_t size)
{
    return !wakesReader(pair, from, data, size, EBPFMON_PACKETS_URGENT, 0);
}

/* Fills in the head of a message of Channel Access (caProto.h, struct ca_hdr), whose body is zeros. */
static size_t caMessage(uint8_t *at, uint16_t command, uint16_t body)
{
    const uint16_t head[8] = { htons(command), htons(body), htons(6), htons(1) };

    memset(at, 0, 16u + body);
    memcpy(at, head, sizeof(head));
    return 16u + body;
}

/* The head of a message of pvAccess. "flags": 0x80 is big-endian, 0x10 a first segment. */
static size_t pvaMessage(uint8_t *at, uint8_t flags, uint8_t command, uint8_t body)
{
    memset(at, 0, 8u + body);
    at[0] = 0xca;
    at[1] = 2;
    at[2] = flags;
    at[3] = command;
    at[flags & 0x80 ? 7 : 4] = body;
    return 8u + body;
}

static void testCa(void)
{
    Pair pair = pairOpen(CA_SERVER);
    uint8_t data[400];
    size_t first;

    testDiag("Channel Access");
    testOk(canWait(&pair, 0, caVersion, sizeof(caVersion)), "the first message of a client can wait");
    testOk(isUrgent(&pair, 0, data, caMessage(data, 4, 8)), "a put cannot");
    testOk(isUrgent(&pair, 0, data, caMessage(data, 19, 8)), "a put-callback cannot");
    testOk(canWait(&pair, 0, data, caMessage(data, 15, 0)), "a get can");
    testOk(canWait(&pair, 0, data, caMessage(data, 1, 16)), "a subscription can");
    first = caMessage(data, 15, 0);
    testOk(isUrgent(&pair, 0, data, first + caMessage(data + first, 4, 8)), "a get and a put in one packet cannot");
    testOk(isUrgent(&pair, 0, data, caMessage(data, 15, 0) - 4), "a part of a message cannot");
    testOk(isUrgent(&pair, 0, data + 4, 12), "… nor can the rest of it");
    testOk(canWait(&pair, 1, data, caMessage(data, 1, 24)), "an update of the server can");
    testOk(canWait(&pair, 1, data, caMessage(data, 19, 0)), "… and its reply to a put-callback, …");
    testOk(wakesReader(&pair, 1, data, caMessage(data, 19, 0), EBPFMON_PACKETS_ALL, 1),
           "… except for a reader that any packet wakes");
    pairClose(&pair, 0);
}

static void testPva(void)
{
    Pair pair = pairOpen(PVA_SERVER);
    uint8_t data[400];

    testDiag("pvAccess");
    testOk(canWait(&pair, 1, data, pvaMessage(data, 0x40, 2, 4)), "what a server sends can wait");
    testOk(isUrgent(&pair, 0, data, pvaMessage(data, 0, 11, 20)), "a put cannot");
    testOk(isUrgent(&pair, 0, data, pvaMessage(data, 0x80, 11, 20)), "… nor a big-endian one");
    testOk(isUrgent(&pair, 0, data, pvaMessage(data, 0, 20, 20)), "a call (RPC) cannot");
    testOk(canWait(&pair, 0, data, pvaMessage(data, 0, 10, 9)), "a get can");
    testOk(canWait(&pair, 0, data, pvaMessage(data, 0x80, 10, 9)), "… and a big-endian one");
    testOk(isUrgent(&pair, 0, data, pvaMessage(data, 0x10, 10, 9)), "a segment of a message cannot");
    pairClose(&pair, 0);
}

static void testOthers(void)
{
    struct pollfd wait = { .fd = rings, .events = POLLIN };
    ebpfMonRing *ring = ebpfMonPacketsGetRing(source);
    ebpfMonPacketsLook look = { .isWhole = 0 };
    unsigned sent = 0;
    Pair pair;

    testDiag("Datagrams and connections");
    do {
        ebpfMonPacketsRead(source, packet, NULL, &look);
        ebpfMonRingsClear(rings);
    } while (!ebpfMonRingBeginSleep(ring, EBPFMON_PACKETS_URGENT));
    datagram(CA_SERVER, caVersion, sizeof(caVersion));
    pair = pairOpen(CA_SERVER);
    pairClose(&pair, 0);
    testOk(poll(&wait, 1, SHORT_MS) == 0, "a datagram, and a connection that begins and ends, can wait");
    while (poll(&wait, 1, 0) == 0 && sent < 10000) {
        datagram(CA_SERVER, caVersion, sizeof(caVersion));
        sent++;
    }
    testOk(sent > 100 && sent < 2000, "many that wait wake the reader: %u", sent);
    ebpfMonRingEndSleep(ring);
    ebpfMonPacketsRead(source, packet, NULL, &look);
    testOk(look.packets >= sent && !look.urgent, "it has all of them: %u", look.packets);
}

MAIN(testPacketsWait)
{
    testPlan(21);
    if (skipWithoutNetwork(21) || skipWithoutSource(21))
        return testDone();
    rings = ebpfMonRingsNew();
    if (rings < 0 || ebpfMonRingsAdd(rings, ebpfMonPacketsGetRing(source)))
        testAbort("no epoll");
    testCa();
    testPva();
    testOthers();
    close(rings);
    ebpfMonPacketsClose(source);
    return testDone();
}
