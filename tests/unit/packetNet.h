/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the tests of probe/packets.h and probe/packetSources.h: a network namespace of this program, one of a child,
 * traffic in both, and the packets that the sources handed up. After each exchange the test sends a marker datagram.
 * The sockets receive it after all earlier packets, so when it is handed up, the earlier ones have been handed up,
 * too.
 */
#ifndef PACKETNET_H
#define PACKETNET_H

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <epicsUnitTest.h>

#include "probe/packets.h"

#define MARKER 5065 /* port */

static const uint8_t caVersion[16] = { 0, 0, 0, 0, 0, 0, 0, 13 };

static ebpfMonPackets *source; /* the source of this program, for its namespace */

/* --- the namespace --------------------------------------------------------------------------------------------- */

static inline int newNetwork(void)
{
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };

    if (unshare(CLONE_NEWNET))
        return -1;

    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result = ioctl(fd, SIOCSIFFLAGS, &lo);

    close(fd);
    return result;
}

/* Makes the namespace. Nonzero: it cannot be made, and all tests of this program are skipped. "tests": their number. */
static inline int skipWithoutNetwork(int tests)
{
    if (newNetwork() == 0)
        return 0;
    testSkip(tests, "a network namespace of our own needs root");
    return 1;
}

/* Opens the source. Nonzero: privileges are missing, and all tests are skipped. Other errors end the program. */
static inline int skipWithoutSource(int tests)
{
    char why[256] = "";

    source = ebpfMonPacketsOpen(0, 0, why, sizeof(why));
    if (source)
        return 0;
    if (!strstr(why, "CAP_BPF"))
        testAbort("%s", why);
    testSkip(tests, why);
    return 1;
}

/* --- packets that were handed up, of the connection or datagram with this port at either end ------------------ */

static struct {
    uint16_t port;
    unsigned packets, empty, syn, fin, rst, cut;
    size_t   longest;
    size_t   bytes[2];          /* [1]: from that port */
    uint8_t  data[2][2u << 20];
    uint64_t time;
    unsigned timed[2];          /* packets of which the program told how long it took, by direction … */
    uint64_t took;              /* … and the sum of what it told */
    uint64_t marker;           /* payload of the last marker */
} seen;

static inline void watch(uint16_t port)
{
    memset(&seen, 0, sizeof(seen));
    seen.port = port;
}

static inline void packet(void *arg, const ebpfMonPacket *one)
{
    const uint8_t *p = one->ip;
    size_t len = one->len;
    const struct iphdr *ip = (const struct iphdr *)p;
    const struct tcphdr *tcp = (const struct tcphdr *)(p + ip->ihl * 4);
    size_t head = ip->ihl * 4u + (ip->protocol == IPPROTO_TCP ? tcp->doff * 4u : 8u);
    int from = ntohs(tcp->source) == seen.port;

    (void)arg;
    if (ip->protocol == IPPROTO_UDP && ntohs(tcp->dest) == MARKER && len == head + sizeof(seen.marker)) {
        memcpy(&seen.marker, p + head, sizeof(seen.marker));
        return; /* it may come from the port that is watched: the kernel chose its port */
    }
    if (!from && ntohs(tcp->dest) != seen.port)
        return;
    seen.time = one->time;
    seen.packets++;
    seen.timed[from] += one->took > 0;
    seen.took += one->took;
    seen.cut += len != one->wireLen || len != ntohs(ip->tot_len);
    if (len > seen.longest)
        seen.longest = len;
    if (ip->protocol == IPPROTO_TCP) {
        seen.syn += tcp->syn;
        seen.fin += tcp->fin;
        seen.rst += tcp->rst;
        seen.empty += len == head && !tcp->syn && !tcp->fin && !tcp->rst;
    }
    if (len > head && seen.bytes[from] + len - head <= sizeof(seen.data[0])) {
        memcpy(seen.data[from] + seen.bytes[from], p + head, len - head);
        seen.bytes[from] += len - head;
    }
}

/* --- traffic --------------------------------------------------------------------------------------------------- */

static inline struct sockaddr_in local(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static inline void datagram(uint16_t port, const void *data, size_t size)
{
    struct sockaddr_in to = local(port);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (sendto(fd, data, size, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)size)
        testAbort("sendto: %s", strerror(errno));
    close(fd);
}

#define BULK 65536

/* A TCP connection on loopback. */
typedef struct {
    int fd[2]; /* client, server */
    struct ebpfMonPeer peer;
} Pair;

/* "from": the port of the client; 0: any. */
static inline Pair pairOpenFrom(uint16_t from, uint16_t port)
{
    struct sockaddr_in at = local(port), client = local(from);
    socklen_t size = sizeof(at);
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Pair pair;

    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    pair.fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(pair.fd[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(pair.fd[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(pair.fd[0], (struct sockaddr *)&client, size) || bind(listener, (struct sockaddr *)&at, size)
        || listen(listener, 1) || connect(pair.fd[0], (struct sockaddr *)&at, size)
        || (pair.fd[1] = accept(listener, NULL, NULL)) < 0)
        testAbort("a connection to port %d: %s", port, strerror(errno));
    setsockopt(pair.fd[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    close(listener);
    getsockname(pair.fd[0], (struct sockaddr *)&at, &size);
    pair.peer = (struct ebpfMonPeer){ .addr = at.sin_addr.s_addr, .saddr = at.sin_addr.s_addr,
                                      .port = at.sin_port, .sport = htons(port) };
    return pair;
}

static inline Pair pairOpen(uint16_t port)
{
    return pairOpenFrom(0, port);
}

/* Sends these bytes, and reads them at the other end. */
static inline void pairSend(const Pair *pair, int from, const void *data, size_t size)
{
    static uint8_t sink[BULK];
    size_t done = 0;

    if (write(pair->fd[from], data, size) != (ssize_t)size)
        testAbort("write: %s", strerror(errno));
    while (done < size) {
        ssize_t n = read(pair->fd[!from], sink, sizeof(sink));

        if (n <= 0)
            testAbort("read: %s", strerror(errno));
        done += (size_t)n;
    }
}

static inline void pairClose(const Pair *pair, int reset)
{
    struct linger hard = { 1, 0 };
    char c;

    if (reset)
        setsockopt(pair->fd[0], SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(pair->fd[0]);
    if (read(pair->fd[1], &c, 1) > 0) /* the other end has closed */
        testAbort("unexpected data");
    close(pair->fd[1]);
}

/* Starts a child in a network namespace of its own. It sends a datagram to each port that it gets from childSend. */
static inline pid_t childStart(int *talk)
{
    int pipes[2];
    uint16_t port = 0;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipes))
        testAbort("socketpair: %s", strerror(errno));

    pid_t pid = fork();

    if (pid == 0) {
        close(pipes[0]);
        if (newNetwork() || write(pipes[1], &port, sizeof(port)) != sizeof(port))
            _exit(1);
        while (read(pipes[1], &port, sizeof(port)) == sizeof(port)) {
            datagram(port, caVersion, sizeof(caVersion));
            if (write(pipes[1], &port, sizeof(port)) != sizeof(port))
                break;
        }
        _exit(0);
    }
    close(pipes[1]);
    if (read(pipes[0], &port, sizeof(port)) != sizeof(port))
        testAbort("no child");
    *talk = pipes[0];
    return pid;
}

/* Makes the child send a datagram to this port, in its network namespace. */
static inline void childSend(int talk, uint16_t port)
{
    if (write(talk, &port, sizeof(port)) != sizeof(port) || read(talk, &port, sizeof(port)) != sizeof(port))
        testAbort("the child ended");
}

/* Reads the packets that have come, or that come within "ms". */
static inline unsigned readWithin(ebpfMonPackets *packets, int ms)
{
    ebpfMonRing *ring = ebpfMonPacketsGetRing(packets);
    struct pollfd wait = { .fd = ring->fd, .events = POLLIN };
    ebpfMonPacketsLook look;

    if (ebpfMonRingBeginSleep(ring, EBPFMON_PACKETS_ALL))
        poll(&wait, 1, ms);
    ebpfMonRingEndSleep(ring);
    ebpfMonPacketsRead(packets, packet, NULL, &look);
    return look.packets;
}

/* Reads all packets that were handed up until now. */
static inline void catchUp(void)
{
    static uint64_t number; /* as long as the shortest message */
    time_t end = time(NULL) + 10;

    number++;
    datagram(MARKER, &number, sizeof(number));
    while (seen.marker != number) {
        readWithin(source, 100);
        if (time(NULL) > end)
            testAbort("the marker does not come");
    }
}

#endif
