/* SPDX-License-Identifier: BSD-3-Clause */
/* watch/packetReader.h: packets of the namespaces of watched IOCs become events. The test runs in a network
 * namespace of its own, and uses one of a child that plays an IOC. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <testMain.h>

#include "common/clock.h"
#include "host/procNetns.h"
#include "packetNet.h"
#include "watch/packetReader.h"

#define CA_PORT    5064
#define OTHER_PORT 33010

/* A CA search for A:B: CA_PROTO_VERSION, CA_PROTO_SEARCH. */
static const uint8_t search[40] = {
    0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 6, 0, 8, 0, 5, 0, 13, 0, 0, 0, 1, 0, 0, 0, 1, 'A', ':', 'B',
};

/* CA_PROTO_VERSION, and CA_PROTO_CREATE_CHAN twice: enough to recognise the protocol and the client on any port. */
static const uint8_t caHello[64] = {
    0, 0, 0, 0, 0, 0, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 18, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 13, 'A', ':', 'B', 0, 0, 0, 0, 0,
    0, 18, 0, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 13, 'A', ':', 'C',
};

/* CA_PROTO_RSRV_IS_UP of a server at OTHER_PORT. */
static const uint8_t beacon[16] = { 0, 13, 0, 0, 0, 13, OTHER_PORT >> 8, OTHER_PORT & 0xff, 0, 0, 0, 1, 127, 0, 0, 1 };

static ebpfMonPacketReader *reader;
static unsigned others, expected; /* of all looks */
static enum ebpfMonPacketsSleep wakes = EBPFMON_PACKETS_ALL;

/* Events that the sinks received. */
static unsigned events[ebpfMonWireFlow + 1];
static struct ebpfMonPeer lastPeer; /* of a search */
static uint32_t covered[8], coveredBefore[8];
static unsigned coveredCount, coversCalls;
static uint64_t coveredSince; /* of the last one */
static unsigned tookCount;
static struct ebpfMonPeer tookFrom;
static uint64_t tookNs;

static void onEvent(void *arg, const ebpfMonWireEvent *ev)
{
    events[ev->kind]++;
    if (ev->kind == ebpfMonWireSearch)
        lastPeer = ev->peer;
}

static void onCovers(void *arg, const uint32_t *netns, const uint64_t *since, unsigned count)
{
    coversCalls++;
    memcpy(coveredBefore, covered, sizeof(covered));
    memcpy(covered, netns, count * sizeof(*netns));
    coveredSince = since[count - 1];
    coveredCount = count;
}

static int setOwner(const struct ebpfMonPeer *peer, const struct ebpfMonOwner *owner)
{
    return 0;
}

static void onRefused(void *arg, int hasWrongSum)
{
}

static int64_t findUser(void *arg, const struct ebpfMonPeer *peer)
{
    return -1;
}

static int isReal(void *arg, const struct ebpfMonPeer *peer, const struct ebpfMonFirst *first)
{
    return 1;
}

static void onTook(void *arg, const struct ebpfMonPeer *sender, uint64_t ns)
{
    tookCount++;
    tookFrom = *sender;
    tookNs += ns;
}

/* Sends a search to this port in this network namespace, then one to CA_PORT, and reads until the second one has
 * come. By then the first one has come, too. Returns the number of searches to the port. */
static unsigned countSearches(uint16_t port)
{
    unsigned before = events[ebpfMonWireSearch];
    struct pollfd wait = { .fd = ebpfMonPacketReaderGetFile(reader), .events = POLLIN };
    ebpfMonPacketReaderLook look;
    time_t end = time(NULL) + 20;

    datagram(port, search, sizeof(search));
    datagram(CA_PORT, search, sizeof(search));
    do {
        if (ebpfMonPacketReaderBeginSleep(reader, wakes))
            poll(&wait, 1, 100);
        ebpfMonPacketReaderEndSleep(reader);
        ebpfMonPacketReaderRead(reader, &look);
        others += look.others;
        expected += look.expected;
        if (time(NULL) > end)
            testAbort("the last search does not come");
    } while (events[ebpfMonWireSearch] == before || ntohs(lastPeer.sport) != CA_PORT);
    return events[ebpfMonWireSearch] - before - 1;
}

static ebpfMonPacketValues tick(void)
{
    ebpfMonPacketValues values;

    ebpfMonPacketReaderTick(reader, 2, &values);
    return values;
}

static void testFollow(ebpfMonTargets *targets, ebpfMonTarget *t)
{
    uint32_t own = ebpfMonProcNetns(getpid()), other = ebpfMonProcNetns(t->pid);
    uint64_t now;

    testDiag("Namespaces of watched IOCs");
    testOk(tick().state == ebpfMonWireTrouble, "no namespace is open: this is trouble");
    ebpfMonPacketReaderFollow(reader, EBPFMON_SECOND_NS);
    testOk(coveredCount == 1 && covered[0] == own && coversCalls == 2, "our own namespace is open");
    ebpfMonTargetsAdd(targets, t);
    ebpfMonPacketReaderFollow(reader, EBPFMON_SECOND_NS);
    testOk(coveredCount == 1 && coversCalls == 4, "not the namespace of an IOC that the filter does not select");
    t->wantedLevel = ebpfMonLevelPuts;
    now = ebpfMonClockMonotonic();
    ebpfMonPacketReaderFollow(reader, EBPFMON_SECOND_NS);
    testOk(coveredSince > now && coveredSince < ebpfMonClockMonotonic(), "since it was opened");
    testOk(coveredCount == 2 && coveredBefore[1] == other && covered[1] == other && coversCalls == 6,
           "the namespace of an IOC, reported before and after it is opened");
    testOk(tick().state == ebpfMonWireOn, "packets are read");
    t->gone = 1;
    ebpfMonPacketReaderFollow(reader, EBPFMON_SECOND_NS);
    testOk(coveredCount == 1 && covered[0] == own, "the IOC has ended: its namespace is closed");
    t->gone = 0;
    kill(t->pid, SIGKILL);
    waitpid(t->pid, NULL, 0);
    ebpfMonPacketReaderFollow(reader, EBPFMON_SECOND_NS);
    testOk(coveredCount == 1 && tick().state == ebpfMonWireOn, "a process that has already ended is no trouble");
}

/* A connection that begins like CA. The decoder of wire/ finds that it is not CA, and then the kernel drops the
 * rest. */
static void testForeign(void)
{
    static const uint8_t noise[200] = { 0xff, 0xfe, 0xfd };
    ebpfMonPacketValues values;
    Pair pair = pairOpen(OTHER_PORT + 2);

    testDiag("A foreign connection");
    pairSend(&pair, 0, caVersion, sizeof(caVersion));
    for (int i = 0; i < 200; i++)
        pairSend(&pair, i & 1, noise, sizeof(noise));
    countSearches(CA_PORT);
    testOk(events[ebpfMonWireForeign] == 1, "the connection is found");
    tick();
    for (int i = 0; i < 200; i++)
        pairSend(&pair, i & 1, noise, sizeof(noise));
    countSearches(CA_PORT);
    values = tick();
    testOk(values.rate < 10, "its packets are not handed up any more: %g per second", values.rate);
    pairClose(&pair, 0);
}

/* Sends a beacon to this port. Returns how many were found. */
static unsigned countBeacons(uint16_t port)
{
    unsigned before = events[ebpfMonWireBeacon];

    datagram(port, beacon, sizeof(beacon));
    countSearches(CA_PORT);
    return events[ebpfMonWireBeacon] - before;
}

static void testEvents(void)
{
    ebpfMonPacketValues values;
    Pair pair;

    testDiag("Events");
    tick();
    countSearches(CA_PORT);
    testOk(ntohs(lastPeer.sport) == CA_PORT && lastPeer.netns == ebpfMonProcNetns(getpid()), "a search on loopback");
    values = tick();
    testOk(values.rate >= 1 && values.rate < 10 && !values.lost, "%g packets per second", values.rate);
    testOk(tick().rate == 0, "… and no more");
    testOk(countSearches(OTHER_PORT) == 1, "a search is read at any port");
    testOk(countBeacons(OTHER_PORT) == 0, "no beacons are expected at this port");
    ebpfMonPacketReaderExpectPort(reader, 0, OTHER_PORT + 1);
    testOk(countBeacons(OTHER_PORT + 1) == 1, "a server listens at the next port");
    pair = pairOpen(OTHER_PORT);
    pairSend(&pair, 0, caHello, sizeof(caHello));
    pairSend(&pair, 1, caVersion, sizeof(caVersion));
    countSearches(CA_PORT);
    testOk(events[ebpfMonWireOpened] == 1 && tick().circuits == 1, "a circuit to the first port");
    testOk(countBeacons(OTHER_PORT) == 1, "so beacons are expected there");
    tookCount = 0;
    tookNs = 0;
    for (int i = 0; i < 200; i++)
        pairSend(&pair, 1, caVersion, sizeof(caVersion));
    countSearches(CA_PORT);
    testOk(tookCount > 5 && tookNs > 0, "some packets tell what their server paid: %u of 200", tookCount);
    testOk(tookFrom.saddr == htonl(INADDR_LOOPBACK) && ntohs(tookFrom.sport) == OTHER_PORT &&
           tookFrom.netns == ebpfMonProcNetns(getpid()), "… and who that is");
    pairClose(&pair, 0);
    countSearches(CA_PORT);
    testOk(events[ebpfMonWireClosed] == 1 && tick().circuits == 0, "the end of the circuit");
}

/* Sends so many beacons at intervals of "ms". What was found before is cleared, and what the searches around them
 * add. */
static void readBeacons(int number, int ms)
{
    unsigned searches;

    others = 0;
    countSearches(CA_PORT);
    searches = others;
    others = expected = 0;
    for (int i = 0; i < number; i++) {
        usleep(1000u * (unsigned)ms); /* the pace of the load */
        datagram(CA_PORT, beacon, sizeof(beacon));
    }
    usleep(1000u * (unsigned)ms);
    countSearches(CA_PORT);
    others -= searches;
}

/* They come for ever: for them the thread neither looks again soon, nor ends its silence. */
static void testBeacons(void)
{
    testDiag("Beacons");
    events[ebpfMonWireBeacon] = 0;
    readBeacons(5, 15);
    testOk(events[ebpfMonWireBeacon] == 5 && !others, "single beacons are not counted: %u of %u", others,
           events[ebpfMonWireBeacon]);
    testOk(expected <= 1, "… and are no reason to look again: %u", expected); /* two searches follow one another */
    readBeacons(100, 0);
    testOk(events[ebpfMonWireBeacon] == 105 && !others && expected > 50, "a flood of them is: %u of %u", expected,
           events[ebpfMonWireBeacon] - 5);
    wakes = EBPFMON_PACKETS_URGENT;
    readBeacons(100, 0);
    testOk(events[ebpfMonWireBeacon] == 205 && !expected, "… but not while only puts wake the thread: %u of %u",
           expected, events[ebpfMonWireBeacon] - 105);
    wakes = EBPFMON_PACKETS_ALL;
}

MAIN(testPacketReader)
{
    const ebpfMonPacketReaderSink sink = { .event = onEvent, .covers = onCovers, .setOwner = setOwner, .took = onTook,
                                           .findUser = findUser, .isReal = isReal, .refused = onRefused };
    ebpfMonTargets *targets = ebpfMonTargetsNew();
    ebpfMonTarget *t = calloc(1, sizeof(*t));
    int talk;

    testPlan(25);
    if (skipWithoutNetwork(24) || skipWithoutSource(24))
        return testDone();
    ebpfMonPacketsClose(source);
    t->pid = childStart(&talk);
    reader = ebpfMonPacketReaderNew(targets, 256u << 10, &sink);
    testFollow(targets, t);
    testEvents();
    testForeign();
    testBeacons();
    ebpfMonPacketReaderFree(reader);
    ebpfMonPacketReaderFree(NULL);
    return testDone();
}
