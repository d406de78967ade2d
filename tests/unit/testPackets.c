/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/packets.h, in a network namespace of this program: packets that are handed up, once and whole, and packets
 * that are not. */
#include <stdlib.h>

#include <testMain.h>

#include <bpf/bpf.h>

#include "common/clock.h"
#include "ebpfMonPacket.h"
#include "packetNet.h"

#define CROWD 25000 /* connections; six for each place (begun, bpf/wire/wire.bpf.c) */

static const uint8_t caCreate[24] = { 0, 18, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 13, 'A', ':', 'B' };
static const uint8_t caSearch[40] = { 0, 0, 0, 0, 0, 1, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0,
                                      0, 6, 0, 8, 0, 5, 0, 13, 0, 0, 0, 1, 0, 0, 0, 1, 'A', ':', 'B' };
static const uint8_t pvaOrder[8] = { 0xca, 2, 0x41, 2 };
static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

static uint8_t *noise(void)
{
    static uint8_t data[BULK];
    uint32_t x = 0x9e3779b9;

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)((x = x * 1664525 + 1013904223) >> 24);
    data[0] = 0x81;
    return data;
}

static uint64_t foreignCount(void)
{
    ebpfMonPacketsStats stats;

    ebpfMonPacketsGetStats(source, &stats);
    return stats.foreign;
}

static void testWanted(void)
{
    const uint8_t *bulk = noise();
    size_t total = sizeof(caVersion) + sizeof(caCreate) + 16 * BULK;
    struct timespec now;
    int same = 1;

    testDiag("a CA connection");
    watch(33001);

    Pair pair = pairOpen(33001);

    pairSend(&pair, 0, caVersion, sizeof(caVersion));
    pairSend(&pair, 1, caVersion, sizeof(caVersion));
    pairSend(&pair, 0, caCreate, sizeof(caCreate));
    for (int i = 0; i < 16; i++) {
        pairSend(&pair, 0, bulk, BULK);
        catchUp();
    }
    testOk(seen.bytes[0] == total, "to the server: %zu of %zu bytes, once", seen.bytes[0], total);
    testOk(seen.bytes[1] == sizeof(caVersion), "from the server: %zu bytes", seen.bytes[1]);
    same = !memcmp(seen.data[0], caVersion, sizeof(caVersion));
    for (size_t i = 0; i < 16; i++)
        same = same && !memcmp(seen.data[0] + total - (i + 1) * BULK, bulk, BULK);
    testOk(same, "each byte is as it was sent");
    testOk(seen.longest > 30000 && !seen.cut, "packets of up to %zu bytes, whole", seen.longest);
    testOk(seen.empty == 0 && seen.syn == 0, "no pure ACKs");
    clock_gettime(CLOCK_REALTIME, &now);
    testOk(llabs((long long)(seen.time / 1000000) - (long long)now.tv_sec * 1000 - now.tv_nsec / 1000000) < 10000,
           "its time is the time of day");

    ebpfMonPacketsSetVerdict(source, &pair.peer, 0);
    pairSend(&pair, 0, caCreate, sizeof(caCreate));
    pairSend(&pair, 1, caCreate, sizeof(caCreate));
    catchUp();
    testOk(seen.bytes[0] == total && seen.bytes[1] == sizeof(caVersion),
           "rejected as foreign: nothing more is handed up");

    struct ebpfMonPeer turned = { .addr = pair.peer.saddr, .port = pair.peer.sport,
                                  .saddr = pair.peer.addr, .sport = pair.peer.port };

    ebpfMonPacketsSetVerdict(source, &turned, 1);
    pairSend(&pair, 0, bulk, 100);
    catchUp();
    testOk(seen.bytes[0] == total + 100, "wanted: all is handed up (the other end is named first)");
    pairClose(&pair, 0);
    catchUp();
    testOk(seen.fin == 2, "both ends of a connection");
}

static void testFirstPackets(void)
{
    const uint8_t *bulk = noise();

    testDiag("other first packets");
    watch(33002);

    Pair pair = pairOpen(33002);

    pairSend(&pair, 1, pvaOrder, sizeof(pvaOrder));
    pairSend(&pair, 0, bulk, 500);
    pairClose(&pair, 1);
    catchUp();
    testOk(seen.bytes[1] == sizeof(pvaOrder) && seen.bytes[0] == 500, "a PVA connection: the server speaks first");
    testOk(seen.rst == 1, "its reset is handed up");

    watch(33003);
    pair = pairOpen(33003);
    pairSend(&pair, 0, caVersion, 3);
    pairSend(&pair, 0, caVersion + 3, sizeof(caVersion) - 3);
    pairSend(&pair, 0, caCreate, sizeof(caCreate));
    catchUp();
    testOk(seen.bytes[0] == sizeof(caVersion) + sizeof(caCreate),
           "too short to judge: it is handed up, and so is the rest");
    pairClose(&pair, 0);
}

/* The first bytes of a connection come in pieces of these sizes, then noise, of which nothing would pass for long. */
static void testPieces(int port, int d, const size_t *sizes, const char *what)
{
    const uint8_t *bulk = noise();
    size_t sent = 0;

    watch(port);

    Pair pair = pairOpen(port);

    for (const size_t *n = sizes; sent < sizeof(caVersion); sent += *n++)
        pairSend(&pair, d, caVersion + sent, *n);
    for (int i = 0; i < 20; i++)
        pairSend(&pair, d, bulk, 100);
    catchUp();
    testOk(seen.bytes[d] == sizeof(caVersion) + 20 * 100, "%s: %zu bytes", what, seen.bytes[d]);
    pairClose(&pair, 0);
}

static void testForeign(void)
{
    static const struct { const char *what; uint8_t data[16]; } odd[] = {
        { "CA, but not what a client says first", { 0, 1, 0, 16, 0, 6, 0, 1 } },
        { "an odd size", { 0, 1, 0, 15, 0, 6, 0, 1 } },
        { "a payload where none can be", { 0, 0, 0, 16, 0, 0, 0, 13 } },
        { "no such command", { 0, 28, 0, 0, 0, 0, 0, 1 } },
        { "PVA magic, reserved flags", { 0xca, 2, 0x0e, 2 } },
        { "PVA magic, no such command", { 0xca, 2, 0, 99 } },
        { "zeros", { 0 } },
    };
    const uint8_t *bulk = noise();
    uint64_t before = foreignCount();

    testDiag("other connections");
    watch(33010);

    Pair pair = pairOpen(33010);

    pairSend(&pair, 0, http, sizeof(http) - 1);
    pairSend(&pair, 1, http, sizeof(http) - 1);
    pairSend(&pair, 0, caVersion, sizeof(caVersion));
    pairClose(&pair, 0);
    catchUp();
    testOk(seen.packets == 0, "HTTP: %u packets", seen.packets);
    testOk(foreignCount() == before + 1, "counted as one connection");

    watch(33011);
    pair = pairOpen(33011);
    for (int i = 0; i < 20; i++)
        pairSend(&pair, i & 1, bulk, BULK);
    pairClose(&pair, 1);
    catchUp();
    testOk(seen.packets == 0, "random bytes: %u packets", seen.packets);

    watch(33012);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        pair = pairOpen(33012);
        pairSend(&pair, 0, odd[i].data, sizeof(odd[i].data));
        pairClose(&pair, 1);
        catchUp();
        testOk(seen.packets == 0, "%s", odd[i].what);
    }

    watch(5064);
    before = foreignCount();
    pair = pairOpen(5064);
    pairSend(&pair, 0, bulk, 100);
    catchUp();
    testOk(seen.syn == 2 && seen.bytes[0] == 100, "where CA is expected, more packets are handed up");
    for (int i = 0; i < 1000; i++)
        pairSend(&pair, i & 1, bulk, 100);
    catchUp();
    testOk(seen.bytes[0] + seen.bytes[1] == 1000 * 100 && foreignCount() == before + 1, "... but not without end");
    pairClose(&pair, 1);
}

/* The same ports at both ends, one connection after the other. */
static void testSamePorts(void)
{
    const uint8_t *bulk = noise();

    testDiag("a CA connection that has the ports of a foreign one");
    for (int round = 0; round < 2; round++) {
        watch(33013);

        Pair pair = pairOpenFrom(33014, 33013);

        for (int i = 0; i < 20; i++)
            pairSend(&pair, i & 1, bulk, 1000);
        catchUp();
        testOk(seen.bytes[0] + seen.bytes[1] == 0, "foreign: nothing is handed up");
        pairClose(&pair, 1);
        pair = pairOpenFrom(33014, 33013);
        pairSend(&pair, 0, caVersion, sizeof(caVersion));
        pairSend(&pair, 0, bulk, 1000);
        catchUp();
        testOk(seen.bytes[0] == sizeof(caVersion) + 1000, "CA: %zu bytes", seen.bytes[0]);
        pairClose(&pair, 1);
    }
}

/* Opens "count" connections, one after the other, and resets each one. */
static void pass(uint16_t port, int count)
{
    struct sockaddr_in at = local(port);
    struct linger hard = { 1, 0 };
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1))
        testAbort("port %d: %s", port, strerror(errno));
    for (int i = 0; i < count; i++) {
        Pair pair = { .fd = { socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1 } };

        if (connect(pair.fd[0], (struct sockaddr *)&at, sizeof(at)) || (pair.fd[1] = accept(listener, NULL, NULL)) < 0)
            testAbort("connection %d: %s", i, strerror(errno));
        setsockopt(pair.fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
        close(pair.fd[0]);
        close(pair.fd[1]);
    }
    close(listener);
}

/* Between the begin of a connection and its first data, or its next ones, so many others begin that each place of the
 * filter's table has had another one. */
static void testCrowd(void)
{
    const uint8_t *bulk = noise();
    Pair ca, foreign;

    testDiag("a crowd of other connections");
    watch(33016);
    foreign = pairOpen(33016);
    pairSend(&foreign, 0, bulk, 100);
    ca = pairOpen(33015);
    pass(33017, CROWD);
    for (int i = 0; i < 20; i++)
        pairSend(&foreign, i & 1, bulk, 1000);
    catchUp();
    testOk(seen.bytes[0] + seen.bytes[1] == 0, "a foreign connection stays foreign: %zu bytes",
           seen.bytes[0] + seen.bytes[1]);
    watch(33015);
    pairSend(&ca, 1, caVersion, 3);
    pairSend(&ca, 1, caVersion + 3, 4);
    pairSend(&ca, 1, caVersion + 7, sizeof(caVersion) - 7);
    for (int i = 0; i < 20; i++)
        pairSend(&ca, 1, bulk, 100);
    catchUp();
    testOk(seen.bytes[1] == sizeof(caVersion) + 20 * 100, "CA, in pieces: %zu bytes", seen.bytes[1]);
    pairClose(&ca, 0);
    pairClose(&foreign, 0);
}

/* How many connections the filter's table "conns" has. Its file descriptor is one of this process. */
static unsigned countConns(void)
{
    struct ebpfMonConnKey key, next;
    unsigned n = 0;

    for (int fd = 3; fd < 256; fd++) {
        struct bpf_map_info info = { 0 };
        uint32_t size = sizeof(info);

        if (bpf_obj_get_info_by_fd(fd, &info, &size) || info.type != BPF_MAP_TYPE_LRU_HASH ||
            info.key_size != sizeof(key) || strcmp(info.name, "conns"))
            continue;
        for (int more = !bpf_map_get_next_key(fd, NULL, &next); more; more = !bpf_map_get_next_key(fd, &key, &next)) {
            key = next;
            n++;
        }
        return n;
    }
    testAbort("the table of connections was not found");
    return 0;
}

/* What ends without data needs no room of connections that are open. */
static void testDead(void)
{
    unsigned before = countConns();

    pass(33017, CROWD);
    testOk(countConns() <= before, "dead connections leave nothing: %u connections, before %u", countConns(), before);
}

/* Connections that are older than the source. */
static void testMiddle(const Pair *ca, const Pair *other)
{
    const uint8_t *bulk = noise();

    testDiag("a connection that began before we watched");
    watch(33020);
    pairSend(ca, 0, bulk, 1000);
    pairSend(ca, 1, bulk, 1000);
    pairSend(ca, 0, caCreate, sizeof(caCreate));
    pairSend(ca, 1, bulk, 1000);
    catchUp();
    testOk(seen.bytes[0] == sizeof(caCreate) && seen.bytes[1] == 1000,
           "it is handed up from its first whole message on");
    pairClose(ca, 0);

    watch(33021);
    for (int i = 0; i < 8; i++)
        pairSend(other, i & 1, bulk, 1000);
    pairSend(other, 0, caCreate, sizeof(caCreate));
    catchUp();
    testOk(seen.packets == 0, "eight other packets: foreign");
    pairClose(other, 1);
}

static void testUdp(void)
{
    testDiag("datagrams");
    watch(5064);
    datagram(5064, caVersion, sizeof(caVersion));
    catchUp();
    testOk(seen.packets == 1 && seen.bytes[0] == sizeof(caVersion), "port 5064: %u", seen.packets);
    watch(33030);
    datagram(33030, caVersion, sizeof(caVersion));
    datagram(33030, "", 0);
    catchUp();
    testOk(seen.packets == 0, "any port: %u", seen.packets);
    datagram(33030, pvaOrder, sizeof(pvaOrder));
    catchUp();
    testOk(seen.packets == 1, "any port, a PVA message: %u", seen.packets);
    datagram(33030, caSearch, sizeof(caSearch));
    datagram(33030, caSearch, 16);
    datagram(33030, caCreate, sizeof(caCreate));
    catchUp();
    testOk(seen.packets == 2, "any port, a CA search, but no version alone, nor another message: %u", seen.packets);
    ebpfMonPacketsExpectPort(source, 33030, 1);
    datagram(33030, caVersion, sizeof(caVersion));
    datagram(33030, "", 0);
    catchUp();
    testOk(seen.packets == 3, "a port that we named, but not a datagram without a message: %u", seen.packets);
    ebpfMonPacketsExpectPort(source, 33030, 0);
    datagram(33030, caVersion, sizeof(caVersion));
    catchUp();
    testOk(seen.packets == 3, "a port that we did not name any more: %u", seen.packets);
}

#define DIALOGUE 1600

/* Nonzero: about one packet in EBPFMON_PACKET_TIMED was. */
static int isTimedOften(unsigned timed)
{
    return timed > DIALOGUE / EBPFMON_PACKET_TIMED / 2 && timed < DIALOGUE / EBPFMON_PACKET_TIMED * 2;
}

/* What a server sends is timed, although in a dialogue its packets alternate with those of the client. */
static void testTook(void)
{
    uint64_t begin = ebpfMonClockMonotonic(), whole;

    watch(33022);
    ebpfMonPacketsExpectPort(source, 33022, 1);

    Pair pair = pairOpen(33022);

    pairSend(&pair, 0, caVersion, sizeof(caVersion));
    for (int i = 0; i < DIALOGUE; i++) {
        pairSend(&pair, 0, caCreate, sizeof(caCreate));
        pairSend(&pair, 1, caCreate, sizeof(caCreate));
    }
    catchUp();
    whole = ebpfMonClockMonotonic() - begin;
    testOk(isTimedOften(seen.timed[1]), "%u of %d packets of the server are timed", seen.timed[1], DIALOGUE);
    testOk(seen.timed[0] == 0, "none of the client is: the server does not pay for them");
    testOk(seen.took > 0 && seen.took < whole * EBPFMON_PACKET_TIMED, "the program took %.0f ns for a packet",
           (double)seen.took / DIALOGUE);
    ebpfMonPacketsExpectPort(source, 33022, 0);
    pairClose(&pair, 0);
    catchUp();
}

static void testFull(void)
{
    char why[256];
    ebpfMonPackets *tiny = ebpfMonPacketsOpen(0, 1, why, sizeof(why));
    const uint8_t *bulk = noise();
    ebpfMonPacketsStats stats;

    if (!tiny)
        testAbort("%s", why);
    for (int i = 0; i < 100; i++)
        datagram(5076, bulk, 60000);
    ebpfMonPacketsGetStats(tiny, &stats);
    testOk(stats.dropped > 0 && stats.passed == 100, "a full ring: %llu of %llu dropped",
           (unsigned long long)stats.dropped, (unsigned long long)stats.passed);

    uint64_t dropped = stats.dropped;

    ebpfMonPacketsGetStats(tiny, &stats);
    testOk(stats.dropped == dropped, "... and the loss is not forgotten");
    watch(5076);
    while (readWithin(tiny, 0) > 0)
        ;
    testOk(seen.packets == 100 - dropped, "the others came: %u", seen.packets);
    ebpfMonPacketsClose(tiny);
}

MAIN(testPackets)
{
    ebpfMonPacketsStats stats;
    Pair ca, other;

    testPlan(49);
    if (skipWithoutNetwork(46))
        return testDone();
    ca = pairOpen(33020);
    other = pairOpen(33021);
    if (skipWithoutSource(46))
        return testDone();
    testMiddle(&ca, &other);
    testWanted();
    testFirstPackets();
    testPieces(33004, 0, (const size_t[]){ 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, "in pieces of one byte");
    testPieces(33005, 1, (const size_t[]){ 3, 4, 9 }, "of the server, in pieces: the third one is long");
    testForeign();
    testSamePorts();
    testCrowd();
    testDead();
    testUdp();
    testTook();
    testFull();
    ebpfMonPacketsGetStats(source, &stats);
    testOk(stats.seen > stats.passed && stats.passed > 0, "%llu seen, %llu passed",
           (unsigned long long)stats.seen, (unsigned long long)stats.passed);
    testOk(stats.dropped == 0, "no packet is dropped");
    ebpfMonPacketsClose(source);
    return testDone();
}
