/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what the monitor costs traffic that is neither CA nor PVA, on the loopback interface of its own network
 * namespace. It needs root:
 *
 *     benchWire [ROUNDS [MILLISECONDS [wall]]]
 *
 * There are three kinds of traffic, and four observers: none; a packet socket whose filter refuses every packet; the
 * packet source; the packet source and the whole kernel part of the monitor, which also sees connections and receives.
 * The packet socket shows what the kernel takes whenever somebody listens, because it copies the headers of each
 * outgoing packet. The observers take turns, and each figure is compared with "none" of the same round. So a slow
 * minute of the machine affects all of them alike.
 *
 * A rate is per second of CPU time of this process (client, server, and the reader of the source), so other programs do
 * not matter. With "wall" it is per second of the clock: kernels with CONFIG_IRQ_TIME_ACCOUNTING do not count the
 * handling of packets as CPU time of the process. Client and server share one CPU. In the end the kernel measures the
 * run time of the filter, which also costs time.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <bpf/bpf.h>

#include "probe/kernelLoad.h"
#include "probe/packets.h"

#define BULK       65536
#define ROUNDS_MAX 100
#define WARM       0.1 /* s */

enum { Transfer, PingPong, Connect, Works };
enum { None, Refusing, Source, Whole, Observers };

static const char *const workName[] = { "bulk transfer, MB/s", "1-byte request and reply, 1/s",
                                        "connect, 2 bytes, close, 1/s" };
static const char *const observerName[] = { "none", "refusing socket", "source", "whole monitor" };

static struct sockaddr_in server;
static int listener;
static volatile int stop;
static clockid_t paid = CLOCK_PROCESS_CPUTIME_ID;
static ebpfMonPackets *source;

static void fail(const char *what)
{
    fprintf(stderr, "benchWire: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* --- traffic --------------------------------------------------------------------------------------------------- */

/* The server of all kinds of traffic: it reads, answers one byte with one byte, and closes after two bytes. */
static void *serve(void *arg)
{
    static char buf[BULK];
    ssize_t n;

    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd))
        while ((n = read(fd, buf, sizeof(buf))) > 0)
            if (n == 2 || (n == 1 && write(fd, buf, 1) != 1))
                break;
    return NULL;
}

static int dial(void)
{
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(fd, (struct sockaddr *)&server, sizeof(server)))
        fail("connect");
    return fd;
}

/* Closes with a reset, so that the port has no state TIME_WAIT and can be used again at once. */
static void hangUp(int fd)
{
    struct linger hard = { 1, 0 };

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(fd);
}

static double measure(int work, double seconds)
{
    static char buf[BULK];
    double end = now(CLOCK_MONOTONIC) + seconds, begin = now(paid), count = 0, each = work == Transfer ? BULK / 1e6 : 1;
    int fd = work == Connect ? -1 : dial();

    memset(buf, 'x', sizeof(buf));
    while (now(CLOCK_MONOTONIC) < end)
        for (int i = 0; i < 20; i++, count += each) {
            if (work == Connect) {
                fd = dial();
                if (write(fd, buf, 2) != 2 || read(fd, buf, 1) != 0)
                    fail("traffic");
                hangUp(fd);
            } else if (work == Transfer ? write(fd, buf, BULK) != BULK :
                                          write(fd, buf, 1) != 1 || read(fd, buf, 1) != 1)
                fail("traffic");
        }
    if (work != Connect)
        hangUp(fd);
    return count / (now(paid) - begin);
}

/* --- observers ------------------------------------------------------------------------------------------------- */

static unsigned handedUp;

static void packet(void *arg, const ebpfMonPacket *one)
{
    handedUp++;
}

static void *readSource(void *arg)
{
    ebpfMonRing *ring = ebpfMonPacketsGetRing(source);
    struct pollfd wait = { .fd = ring->fd, .events = POLLIN };
    ebpfMonPacketsLook look;

    while (!stop) {
        if (ebpfMonRingBeginSleep(ring, EBPFMON_PACKETS_URGENT))
            poll(&wait, 1, 20);
        ebpfMonRingEndSleep(ring);
        ebpfMonPacketsRead(source, packet, arg, &look);
    }
    return NULL;
}

static int refusing(void)
{
    struct sock_filter no = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog filter = { 1, &no };
    struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    int fd = socket(AF_PACKET, SOCK_DGRAM, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter))
        || bind(fd, (struct sockaddr *)&all, sizeof(all)))
        fail("packet socket");
    return fd;
}

static int refused = -1;
static pthread_t reader;

static void beginObserver(int observer)
{
    ebpfMonLoadSizes sizes = { .maxRecords = 10000, .maxClosure = 10000, .maxRoots = 10000, .ringBytes = 1 << 20 };
    char why[256];

    if (observer == Refusing)
        refused = refusing();
    if (observer == Whole && ebpfMonKernelLoad(&sizes, why, sizeof(why))) {
        fprintf(stderr, "benchWire: %s\n", why);
        exit(1);
    }
    if (observer < Source)
        return;
    source = ebpfMonPacketsOpen(0, 0, why, sizeof(why));
    if (!source) {
        fprintf(stderr, "benchWire: %s\n", why);
        exit(1);
    }
    stop = 0;
    pthread_create(&reader, NULL, readSource, NULL);
}

static void endObserver(int observer)
{
    if (observer >= Source) {
        stop = 1;
        pthread_join(reader, NULL);
        ebpfMonPacketsClose(source);
    }
    if (observer == Whole)
        ebpfMonKernelUnload();
    if (observer == Refusing)
        close(refused);
}

/* --- the table ------------------------------------------------------------------------------------------------- */

static int byValue(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print(int work, double (*rate)[Observers], int rounds)
{
    double sorted[ROUNDS_MAX];

    for (int o = 0; o < Observers; o++) {
        for (int r = 0; r < rounds; r++)
            sorted[r] = rate[r][o];
        qsort(sorted, (size_t)rounds, sizeof(*sorted), byValue);
        printf("%-32s %-16s %12.0f", o ? "" : workName[work], observerName[o], sorted[rounds / 2]);
        for (int r = 0; r < rounds; r++)
            sorted[r] = rate[r][o] / rate[r][None];
        qsort(sorted, (size_t)rounds, sizeof(*sorted), byValue);
        if (o)
            printf(" %8.3f %8.3f %8.3f", sorted[0], sorted[rounds / 2], sorted[rounds - 1]);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static double rate[Works][ROUNDS_MAX][Observers];
    int rounds = argc > 1 ? atoi(argv[1]) : 12, clock;
    double seconds = (argc > 2 ? atoi(argv[2]) : 250) * 1e-3;
    struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    socklen_t size = sizeof(server);
    ebpfMonPacketsStats stats, before = { 0 };
    pthread_t thread;
    cpu_set_t one;

    if (argc > 3 && !strcmp(argv[3], "wall"))
        paid = CLOCK_MONOTONIC;
    if (rounds < 1 || rounds > ROUNDS_MAX)
        rounds = ROUNDS_MAX;
    server.sin_family = AF_INET;
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (unshare(CLONE_NEWNET))
        fail("a network namespace");
    listener = socket(AF_INET, SOCK_STREAM, 0);
    if (ioctl(listener, SIOCSIFFLAGS, &lo) || bind(listener, (struct sockaddr *)&server, size)
        || listen(listener, 128) || getsockname(listener, (struct sockaddr *)&server, &size))
        fail("lo");
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    pthread_create(&thread, NULL, serve, NULL);
    for (int w = 0; w < Works; w++)
        measure(w, seconds); /* warms up */
    for (int r = 0; r < rounds; r++)
        for (int o = 0; o < Observers; o++) {
            beginObserver((r + o) % Observers);
            for (int w = 0; w < Works; w++)
                measure(w, WARM); /* to load the kernel part warms the CPU up: so do the others */
            for (int w = 0; w < Works; w++)
                rate[w][r][(r + o) % Observers] = measure(w, seconds);
            endObserver((r + o) % Observers);
        }
    printf("%d rounds of %.0f ms; ratio to \"none\" of the same round\n\n%-32s %-16s %12s %8s %8s %8s\n", rounds,
           seconds * 1e3, "traffic", "observer", "median", "least", "median", "most");
    for (int w = 0; w < Works; w++)
        print(w, rate[w], rounds);
    printf("\n%u packets handed up\n", handedUp);
    clock = bpf_enable_stats(BPF_STATS_RUN_TIME);
    beginObserver(Source);
    for (int w = 0; clock >= 0 && w < Works; w++, before = stats) {
        measure(w, seconds);
        ebpfMonPacketsGetStats(source, &stats);
        printf("%-32s %.0f ns a call, %llu calls\n", workName[w],
               (double)(stats.ns - before.ns) / (double)(stats.runs - before.runs),
               (unsigned long long)(stats.runs - before.runs));
    }
    endObserver(Source);
    return 0;
}
