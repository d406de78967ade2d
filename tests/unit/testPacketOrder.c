/* SPDX-License-Identifier: BSD-3-Clause */
/* probe/packets.h: TCP packets in an order that sockets on loopback never make. So the test makes each packet by hand,
 * between two addresses that no host has (RFC 5737), and sends it into lo of its own network namespace. There the
 * filter sees it; then the kernel drops it, because no route leads to its address. */
#include <net/ethernet.h>
#include <netpacket/packet.h>

#include <testMain.h>

#include "ebpfMonPacket.h"
#include "packetNet.h"

#define CLIENT 0xc0000201u /* 192.0.2.1 */
#define SERVER 0xc0000202u
#define CROWD  30000       /* connections; more than the filter's table "begun" has places (bpf/wire/wire.bpf.c) */

static const uint8_t pvaOrder[8] = { 0xca, 2, 0x41, 2 };
static const uint8_t noise[100] = { 0x81, 0x42, 0x99, 0x17, 0xe3, 0x55, 0x07, 0xd1 };

/* A connection of which only packets exist. */
typedef struct {
    int      fd;      /* packet socket on lo */
    uint16_t port[2]; /* client, server */
    uint32_t seq[2];  /* of the next packet from each */
} Made;

typedef struct {
    struct ether_header ether;
    struct iphdr ip;
    struct tcphdr tcp;
    uint8_t data[sizeof(noise)];
} __attribute__((packed)) Frame;

static int openLo(void)
{
    struct sockaddr_ll lo = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("lo") };
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: it receives nothing */

    if (fd < 0 || bind(fd, (struct sockaddr *)&lo, sizeof(lo)))
        testAbort("a packet socket on lo: %s", strerror(errno));
    return fd;
}

/* lo keeps the order of packets only if they come from one CPU: each CPU has a queue (net/core/dev.c, netif_rx). */
static void stayOnCpu(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        testAbort("sched_setaffinity: %s", strerror(errno));
}

/* Sends one packet. "from": 0 the client, 1 the server; "at": the sequence number of its data; "flags": of tcphdr, in
 * its byte 13 (RFC 9293, 3.1). */
static void sendFrame(const Made *made, int from, uint32_t at, uint8_t flags, const void *data, size_t size)
{
    size_t length = sizeof(struct iphdr) + sizeof(struct tcphdr) + size;
    Frame frame = { .ether.ether_type = htons(ETHERTYPE_IP) };

    frame.ip = (struct iphdr){ .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_TCP,
                               .tot_len = htons((uint16_t)length), .saddr = htonl(from ? SERVER : CLIENT),
                               .daddr = htonl(from ? CLIENT : SERVER) };
    frame.tcp = (struct tcphdr){ .source = htons(made->port[from]), .dest = htons(made->port[!from]),
                                 .seq = htonl(at), .doff = 5 };
    frame.tcp.th_flags = flags;
    if (size)
        memcpy(frame.data, data, size);
    length += sizeof(struct ether_header);
    if (send(made->fd, &frame, length, 0) != (ssize_t)length)
        testAbort("send: %s", strerror(errno));
}

static void sendSyn(Made *made)
{
    sendFrame(made, 0, made->seq[0]++, TH_SYN, NULL, 0);
}

static void sendSynAck(Made *made)
{
    sendFrame(made, 1, made->seq[1]++, TH_SYN | TH_ACK, NULL, 0);
}

/* A connection with this port of the client, and this one of the server, whose packets are watched. */
static Made openMade(int fd, uint16_t client, uint16_t server)
{
    Made made = { fd, { client, server }, { 2000, 3000 } };

    watch(server);
    sendSyn(&made);
    sendSynAck(&made);
    return made;
}

static void sendData(Made *made, int from, const void *data, size_t size)
{
    sendFrame(made, from, made->seq[from], TH_ACK, data, size);
    made->seq[from] += (uint32_t)size;
}

/* The answer of a server comes after so many other connections have begun that each place of the filter's table has
 * had another one. */
static void testLateAnswer(int fd)
{
    Made made = { fd, { 40000, 33100 }, { 1000, 0x70000000 } };

    testDiag("SYN-ACK after the connection has lost its place");
    watch(33100);
    sendSyn(&made);
    for (int i = 0; i < CROWD; i++) {
        Made other = { fd, { (uint16_t)(1024 + i), 33101 }, { 7000, 0 } };

        sendSyn(&other);
        if (i % 100 == 99)
            catchUp(); /* the queue of lo has room for 1000 packets (net.core.netdev_max_backlog) */
    }
    sendSynAck(&made);
    sendData(&made, 1, pvaOrder, 3);
    sendData(&made, 1, pvaOrder + 3, 2);
    sendData(&made, 1, pvaOrder + 5, sizeof(pvaOrder) - 5);
    for (int i = 0; i < 20; i++)
        sendData(&made, 1, noise, sizeof(noise));
    catchUp();
    testOk(seen.bytes[1] == sizeof(pvaOrder) + 20 * sizeof(noise), "a PVA server, in pieces: %zu bytes", seen.bytes[1]);
}

/* The second packet of a client overtakes the first one. It need not begin with a message. */
static void testOvertaken(int fd)
{
    Made made = openMade(fd, 40001, 33102);

    testDiag("a packet overtakes the first one");
    sendFrame(&made, 0, made.seq[0] + sizeof(caVersion), TH_ACK, noise, sizeof(noise));
    sendData(&made, 0, caVersion, sizeof(caVersion));
    made.seq[0] += sizeof(noise);
    for (int i = 0; i < 20; i++)
        sendData(&made, 0, noise, sizeof(noise));
    catchUp();
    testOk(seen.bytes[0] == sizeof(caVersion) + 21 * sizeof(noise), "a CA client: %zu bytes", seen.bytes[0]);
}

/* The same two packets in their order, of a connection whose first data are no message. */
static void testForeign(int fd)
{
    Made made = openMade(fd, 40002, 33103);

    sendData(&made, 0, noise, sizeof(noise));
    sendData(&made, 0, caVersion, sizeof(caVersion));
    catchUp();
    testOk(seen.packets == 0, "no message at the begin: foreign, %u packets", seen.packets);
}

MAIN(testPacketOrder)
{
    int fd;

    testPlan(3);
    if (skipWithoutNetwork(3) || skipWithoutSource(3))
        return testDone();
    stayOnCpu();
    fd = openLo();
    testLateAnswer(fd);
    testOvertaken(fd);
    testForeign(fd);
    close(fd);
    ebpfMonPacketsClose(source);
    return testDone();
}
