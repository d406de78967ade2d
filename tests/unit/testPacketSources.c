/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/packetSources.h: sources are opened and closed as the list of network namespaces changes. What the caller
 * sets for a port or a connection reaches the right sources. The test runs in a network namespace of its own, and
 * uses one of a child. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <epicsAtomic.h>
#include <errlog.h>
#include <testMain.h>

#include "common/clock.h"
#include "packetNet.h"
#include "probe/packetSources.h"

#define RING      (256u << 10)              /* the smallest size of a source's ring */
#define BEGIN     (100 * EBPFMON_SECOND_NS)
#define LAST_PORT 5064                      /* of the datagram that ends an exchange; every source expects it */
#define SITE_PORT 7064                      /* and the next three: ports in our environment */
#define TCP_PORT  33001

enum { OWN, CHILD, NETWORKS };

static ebpfMonPacketSources *sources;
static ebpfMonNetns network[NETWORKS];
static int talk;                            /* pipe to the child */

static const char *const portNames[] = {
    "EPICS_CA_SERVER_PORT", "EPICS_CAS_SERVER_PORT", "EPICS_CA_REPEATER_PORT", "EPICS_CAS_BEACON_PORT",
};

/* What the sinks received: packets and messages. */
static unsigned handedUp[NETWORKS][65536];  /* packets with data to or from this port */
static unsigned openedCount;
static ebpfMonNetns opened;
static int fetchErrors;                     /* atomic; messages that the value of a variable of the environment is no
                                             * port */
static int complaints;                      /* messages that packets are not seen */

static void onPacket(void *arg, uint32_t netns, const ebpfMonPacket *packet)
{
    const uint8_t *p = packet->ip;
    const struct iphdr *ip = (const struct iphdr *)p;
    const struct tcphdr *tcp = (const struct tcphdr *)(p + ip->ihl * 4);
    size_t head = ip->ihl * 4u + (ip->protocol == IPPROTO_TCP ? tcp->doff * 4u : 8u);
    int n = netns == network[CHILD].netns ? CHILD : OWN;

    if (packet->len > head) {
        handedUp[n][ntohs(tcp->source)]++;
        handedUp[n][ntohs(tcp->dest)]++;
    }
}

static void onOpened(void *arg, pid_t pid, uint32_t netns)
{
    openedCount++;
    opened = (ebpfMonNetns){ .pid = pid, .netns = netns };
}

static void onMessage(void *arg, const char *message)
{
    if (strstr(message, "fetch failed"))
        epicsAtomicIncrIntT(&fetchErrors);
    if (strstr(message, "in packets are not seen"))
        epicsAtomicIncrIntT(&complaints);
}

static ebpfMonPacketSources *sourcesNew(void)
{
    const ebpfMonPacketSourcesSink sink = { .packet = onPacket, .opened = onOpened };

    return ebpfMonPacketSourcesNew(RING, &sink);
}

static void follow(unsigned first, unsigned count, uint64_t now)
{
    ebpfMonPacketSourcesFollow(sources, network + first, count, now);
}

static void sendTo(int n, uint16_t port)
{
    if (n == CHILD)
        childSend(talk, port);
    else
        datagram(port, caVersion, sizeof(caVersion));
}

/* Waits for packets, at most "ms". */
static void waitFor(int ms)
{
    struct pollfd wait = { .fd = ebpfMonPacketSourcesFile(sources), .events = POLLIN };

    if (ebpfMonPacketSourcesBeginSleep(sources, EBPFMON_PACKETS_ALL))
        poll(&wait, 1, ms);
    ebpfMonPacketSourcesEndSleep(sources);
}

/* Reads all packets that were sent in this network until now. A source hands packets up in order. */
static void readAll(int n)
{
    unsigned before = handedUp[n][LAST_PORT];
    time_t end = time(NULL) + 20;
    ebpfMonPacketsLook look;

    sendTo(n, LAST_PORT);
    while (handedUp[n][LAST_PORT] == before) {
        waitFor(100);
        ebpfMonPacketSourcesRead(sources, &look);
        if (time(NULL) > end)
            testAbort("the last packet of an exchange does not come");
    }
}

/* Sends a datagram to this port. Returns how often it was handed up. */
static unsigned countDatagram(int n, uint16_t port)
{
    unsigned before = handedUp[n][port];

    sendTo(n, port);
    readAll(n);
    return handedUp[n][port] - before;
}

/* Sends a message on a connection in this network namespace. Returns how often it was handed up. */
static unsigned countMessage(const Pair *pair)
{
    unsigned before = handedUp[OWN][TCP_PORT];

    pairSend(pair, 0, caVersion, sizeof(caVersion));
    readAll(OWN);
    return handedUp[OWN][TCP_PORT] - before;
}

static ebpfMonPacketSourcesState readState(void)
{
    ebpfMonPacketSourcesState state;

    ebpfMonPacketSourcesGetState(sources, &state);
    return state;
}

static void testFollow(void)
{
    uint32_t list[EBPFMON_PACKET_SOURCES_MAX];

    testDiag("Sources follow a list of namespaces");
    testOk(ebpfMonPacketSourcesList(sources, list) == 0 && readState().count == 0, "at first there is no source");
    follow(OWN, 1, BEGIN);
    testOk(ebpfMonPacketSourcesList(sources, list) == 1 && list[0] == network[OWN].netns && openedCount == 0,
           "our own namespace, which is not reported to the sink");
    testOk1(countDatagram(OWN, 5065) == 1);
    follow(OWN, 2, BEGIN);
    testOk(ebpfMonPacketSourcesList(sources, list) == 2 && list[0] == network[OWN].netns &&
               list[1] == network[CHILD].netns && readState().count == 2,
           "the namespace of the child, too");
    testOk(openedCount == 1 && opened.pid == network[CHILD].pid && opened.netns == network[CHILD].netns,
           "the sink is told that it is open");
    follow(OWN, 2, BEGIN);
    testOk(openedCount == 1 && readState().count == 2, "the same list again: nothing is opened");
    memset(handedUp, 0, sizeof(handedUp));
    testOk(countDatagram(CHILD, 5065) == 1 && !handedUp[OWN][5065], "a packet of the child has its namespace");
    testOk(countDatagram(OWN, 5065) == 1 && handedUp[CHILD][5065] == 1, "a packet of this process has our namespace");
}

static void testPorts(void)
{
    unsigned n = 0;

    testDiag("Ports");
    for (unsigned i = 0; i < 4; i++)
        n += countDatagram(OWN, (uint16_t)(SITE_PORT + i));
    testOk(n == 4, "%u of 4 ports of our environment are expected", n);
    testOk1(countDatagram(OWN, 6001) == 0 && countDatagram(CHILD, 6001) == 0);
    ebpfMonPacketSourcesExpectPort(sources, network[CHILD].netns, 6001);
    testOk(countDatagram(OWN, 6001) == 0 && countDatagram(CHILD, 6001) == 1,
           "the port is expected in the namespace of the child only");
    ebpfMonPacketSourcesExpectPort(sources, 0, 6002);
    testOk(countDatagram(OWN, 6002) == 1 && countDatagram(CHILD, 6002) == 1, "the port is expected in all namespaces");
}

static void testReject(void)
{
    Pair pair = pairOpen(TCP_PORT);
    struct ebpfMonPeer peer = pair.peer;

    testDiag("Connections");
    testOk1(countMessage(&pair) == 1);
    peer.netns = network[CHILD].netns;
    ebpfMonPacketSourcesReject(sources, &peer);
    testOk(countMessage(&pair) == 1, "a connection with these addresses is rejected in the namespace of the child");
    peer.netns = network[OWN].netns;
    ebpfMonPacketSourcesReject(sources, &peer);
    testOk(countMessage(&pair) == 0, "... and rejected in ours");
    pairClose(&pair, 1);
    pair = pairOpen(TCP_PORT);
    testOk(countMessage(&pair) == 1, "the next connection with these addresses is not rejected");
    peer = pair.peer;
    peer.netns = 0;
    ebpfMonPacketSourcesReject(sources, &peer);
    testOk(countMessage(&pair) == 0, "a connection is rejected in all namespaces");
    pairClose(&pair, 1);
}

static void testState(void)
{
    ebpfMonPacketSourcesState before = readState(), after;
    uint64_t begin = ebpfMonClockMonotonic();
    uint32_t list[EBPFMON_PACKET_SOURCES_MAX];
    ebpfMonPacketsLook look;

    testDiag("Counts");
    countDatagram(OWN, 5065);
    countDatagram(CHILD, 5065);
    after = readState();
    testOk(after.passed == before.passed + 4 && after.dropped == 0 && !after.trouble, "%u packets of 4 passed",
           (unsigned)(after.passed - before.passed));
    sendTo(CHILD, 5065);
    waitFor(10000);
    testOk(ebpfMonClockMonotonic() - begin < 9 * EBPFMON_SECOND_NS, "a packet ends the wait");
    for (unsigned i = 0; i < 4000 && !after.dropped; i++) {
        sendTo(CHILD, 5065);
        after = readState();
    }
    testOk(after.dropped > 0, "the ring is full: packets are lost");
    ebpfMonPacketSourcesRead(sources, &look);
    handedUp[CHILD][5065] = 0;
    sendTo(CHILD, 5065);
    before = readState();
    follow(OWN, 1, BEGIN);
    testOk(handedUp[CHILD][5065] == 1, "packets that came before are handed up");
    after = readState();
    testOk(ebpfMonPacketSourcesList(sources, list) == 1 && list[0] == network[OWN].netns && after.count == 1,
           "the child's namespace is not in the list any more");
    testOk(after.passed < before.passed && after.dropped >= before.dropped,
           "its packets are not counted any more, but its lost packets are");
    testOk(countDatagram(OWN, 5065) == 1, "our own source goes on");
    follow(CHILD, 1, BEGIN);
    testOk(ebpfMonPacketSourcesList(sources, list) == 1 && list[0] == network[CHILD].netns && openedCount == 2 &&
               countDatagram(CHILD, 5065) == 1,
           "the source of the child comes back, ours is closed");
}

/* Follows both namespaces, while no file can be opened for the one that is new. */
static void followWithoutFiles(const ebpfMonNetns *both, uint64_t now)
{
    struct rlimit limit, none;

    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    ebpfMonPacketSourcesFollow(sources, both, 2, now);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void testTrouble(void)
{
    ebpfMonNetns both[2] = { network[OWN], network[CHILD] };
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    testDiag("A namespace that cannot be opened");
    follow(OWN, 0, BEGIN);
    testOk1(readState().count == 0);
    both[1].pid = pid;
    ebpfMonPacketSourcesFollow(sources, both, 2, BEGIN);
    errlogFlush();
    testOk(readState().count == 1 && !readState().trouble && epicsAtomicGetIntT(&complaints) == 0,
           "if its process has ended meanwhile, that is no trouble");
    both[1] = network[CHILD];
    for (int i = 0; i < 2; i++)
        followWithoutFiles(both, BEGIN);
    testOk(readState().count == 1 && readState().trouble && countDatagram(OWN, 5065) == 1,
           "the other namespaces are opened");
    followWithoutFiles(both, BEGIN + 31 * EBPFMON_SECOND_NS);
    errlogFlush();
    testOk(epicsAtomicGetIntT(&complaints) == 1, "one message was logged: %d", epicsAtomicGetIntT(&complaints));
    follow(OWN, 2, BEGIN + 60 * EBPFMON_SECOND_NS);
    testOk(readState().count == 1 && readState().trouble, "it is not tried again within 30 s");
    follow(OWN, 2, BEGIN + 62 * EBPFMON_SECOND_NS);
    testOk(readState().count == 2 && !readState().trouble, "... but then it is");
    ebpfMonPacketSourcesFollow(sources, both, 1, BEGIN + 62 * EBPFMON_SECOND_NS);
    followWithoutFiles(both, BEGIN + 62 * EBPFMON_SECOND_NS);
    errlogFlush();
    testOk(epicsAtomicGetIntT(&complaints) == 2, "trouble that comes back is logged again");
}

static unsigned countFiles(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* The namespace of this program with invented inodes, in any number. */
static void testMany(void)
{
    ebpfMonNetns many[EBPFMON_PACKET_SOURCES_MAX + 1];
    uint32_t list[EBPFMON_PACKET_SOURCES_MAX];
    unsigned files = countFiles();

    testDiag("More namespaces than there can be sources");
    for (unsigned i = 0; i < 4; i++)
        unsetenv(portNames[i]);
    sources = sourcesNew();
    for (unsigned i = 0; i <= EBPFMON_PACKET_SOURCES_MAX; i++)
        many[i] = (ebpfMonNetns){ .netns = i + 1, .pid = getpid() };
    ebpfMonPacketSourcesFollow(sources, many, EBPFMON_PACKET_SOURCES_MAX + 1, BEGIN);
    testOk(ebpfMonPacketSourcesList(sources, list) == EBPFMON_PACKET_SOURCES_MAX && !readState().trouble,
           "%u have a source", readState().count);
    errlogFlush();
    testOk(!fetchErrors, "no error when a port is not set: Base has no default for some");
    ebpfMonPacketSourcesFree(sources);
    ebpfMonPacketSourcesFree(NULL);
    testOk(countFiles() == files, "they are closed: %u files as before", countFiles());
}

/* Variables of the environment that the sources read when they are opened. */
static void setSitePorts(void)
{
    char port[8];

    for (unsigned i = 0; i < 4; i++) {
        snprintf(port, sizeof(port), "%u", SITE_PORT + i);
        setenv(portNames[i], port, 1);
    }
}

MAIN(testPacketSources)
{
    testPlan(35);
    if (skipWithoutNetwork(34) || skipWithoutSource(34))
        return testDone();
    ebpfMonPacketsClose(source);
    setSitePorts();
    eltc(0);
    errlogAddListener(onMessage, NULL);
    network[OWN] = (ebpfMonNetns){ .netns = ebpfMonProcNetns(getpid()), .pid = getpid() };
    network[CHILD].pid = childStart(&talk);
    network[CHILD].netns = ebpfMonProcNetns(network[CHILD].pid);
    sources = sourcesNew();
    testFollow();
    testPorts();
    testReject();
    testState();
    testTrouble();
    ebpfMonPacketSourcesFree(sources);
    close(talk);
    waitpid(network[CHILD].pid, NULL, 0);
    testMany();
    return testDone();
}
