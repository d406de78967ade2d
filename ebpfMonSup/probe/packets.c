/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See packets.h. The programs copy the wanted packets into a BPF ring. (The ring of a packet socket, TPACKET_V3, has a
 * timer that always runs, and delivers packets some ms late.)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/capability.h>
#include <sys/random.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/socket.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "common/clock.h"
#include "ebpfMonPacket.h"
#include "ebpfMonWireBpf.skel.h"
#include "host/netnsSocket.h"
#include "host/procInfo.h"
#include "probe/kernelTables.h"
#include "probe/libbpfText.h"
#include "probe/packets.h"

/* --- taps --- */

typedef struct ebpfMonPacketTaps ebpfMonPacketTaps;

#define LOOPBACK_IFINDEX 1  /* of lo in every namespace: loopback_net_init() of the kernel checks it */
#define TCX_INGRESS      46 /* BPF_TCX_INGRESS: kernel headers before 6.6 do not have it */
#define ALL_DEVICES      0

typedef struct {
    int device; /* index of the device; or ALL_DEVICES */
    int fd;
} packetSocket;

struct ebpfMonPacketTaps {
    int          socketProgram;
    int          lo;         /* the tcx link of lo; -1: there is none, and one socket sees all devices */
    packetSocket socket[EBPFMON_TAP_DEVICES_MAX];
    unsigned     count;
    ebpfMonNetDevices *devices; /* NULL without a link at lo */
};

typedef struct {
    int program;
} wantedLink;

static int attachToLo(void *arg)
{
    const wantedLink *wanted = arg;

    return bpf_link_create(wanted->program, LOOPBACK_IFINDEX, (enum bpf_attach_type)TCX_INGRESS, NULL);
}

int ebpfMonPacketTapsHaveTcx(void)
{
    const struct bpf_insn next[] = {
        { .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = -1 }, /* TCX_NEXT */
        { .code = BPF_JMP | BPF_EXIT },
    };
    wantedLink wanted = {
        .program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "ebpfmon_tcx", "GPL", next, sizeof(next) / sizeof(next[0]),
                                 NULL),
    };
    int link;

    if (wanted.program < 0)
        return 0;
    link = attachToLo(&wanted);
    close(wanted.program);
    if (link >= 0)
        close(link);
    return link >= 0;
}

/* Attaches the filter before the socket receives: no packet may come that the filter has not seen. */
static int beginSocket(int fd, int device, int program)
{
    struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = device };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof(program)) ||
           bind(fd, (struct sockaddr *)&at, sizeof(at));
}

/* 0, or -1 with errno. */
static int addSocket(ebpfMonPacketTaps *t, pid_t pid, int device, uint32_t *netns)
{
    /* protocol 0: the socket receives nothing until it is bound */
    int err, fd = ebpfMonNetnsSocketOpen(pid, AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0, netns);

    if (fd < 0)
        return -1;
    if (beginSocket(fd, device, t->socketProgram)) {
        err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    t->socket[t->count++] = (packetSocket){ device, fd };
    return 0;
}

static void closeSocket(ebpfMonPacketTaps *t, unsigned i)
{
    close(t->socket[i].fd);
    t->socket[i] = t->socket[--t->count];
}

/* Uses one socket for all devices. It opens before the others close, because a packet that comes twice does less harm
 * than a lost one. 0; or -1 with errno: then the others stay. */
static int useOneSocket(ebpfMonPacketTaps *t, pid_t pid, uint32_t *netns)
{
    if (t->count == EBPFMON_TAP_DEVICES_MAX)
        closeSocket(t, 0);
    if (addSocket(t, pid, ALL_DEVICES, netns))
        return -1;
    for (unsigned i = 0; i < t->count;)
        if (t->socket[i].device == ALL_DEVICES)
            i++;
        else
            closeSocket(t, i);
    return 0;
}

static int hasDevice(const int *index, int count, int device)
{
    for (int i = 0; i < count; i++)
        if (index[i] == device)
            return 1;
    return 0;
}

/* Gives each device that exists a socket. 0, or -1: one device has none. */
static int followDevices(ebpfMonPacketTaps *t, pid_t pid)
{
    int index[EBPFMON_TAP_DEVICES_MAX], status = 0;
    int count = ebpfMonNetDevicesList(t->devices, index, EBPFMON_TAP_DEVICES_MAX);

    if (count < 0 || count > EBPFMON_TAP_DEVICES_MAX)
        return -1;
    for (unsigned i = 0; i < t->count;)
        if (hasDevice(index, count, t->socket[i].device))
            i++;
        else
            closeSocket(t, i);
    for (int k = 0; k < count; k++) {
        unsigned i;

        for (i = 0; i < t->count && t->socket[i].device != index[k]; i++) {}
        /* a device that was removed meanwhile: the kernel reports it, and then the list is made again */
        if (i == t->count && addSocket(t, pid, index[k], NULL) && errno != ENODEV && errno != ENXIO)
            status = -1;
    }
    return status;
}

static void closeLo(ebpfMonPacketTaps *t)
{
    if (t->lo >= 0)
        close(t->lo);
    t->lo = -1;
    ebpfMonNetDevicesClose(t->devices);
    t->devices = NULL;
}

/* Adapts the sockets to the network devices that exist now. "pid": a process of the namespace; 0: our own. Call it
 * every few seconds. */
static void followTaps(ebpfMonPacketTaps *t, pid_t pid)
{
    if (t->lo < 0 || !ebpfMonNetDevicesHaveChanged(t->devices) || followDevices(t, pid) == 0)
        return;
    if (useOneSocket(t, pid, NULL) == 0) /* else nothing changes until the next call */
        closeLo(t);
}

/* Uses tcx at lo and a socket for each other device. 0, or -1: not possible. */
static int useTcx(ebpfMonPacketTaps *t, pid_t pid, int loProgram, uint32_t *netns)
{
    wantedLink wanted = { loProgram };

    t->devices = ebpfMonNetDevicesOpen(pid);
    if (!t->devices)
        return -1;
    t->lo = ebpfMonNetnsCall(pid, attachToLo, &wanted, netns);
    return t->lo >= 0 && followDevices(t, pid) == 0 ? 0 : -1;
}

/* NULL does no harm */
static void closeTaps(ebpfMonPacketTaps *t)
{
    if (!t)
        return;
    while (t->count)
        closeSocket(t, t->count - 1);
    closeLo(t);
    free(t);
}

/* Opens the taps in the network namespace of process "pid"; 0: in our own. "socketProgram", "loProgram": file
 * descriptors of loaded programs, which stay the caller's; "loProgram" -1: do not use tcx. *netns gets the inode of the
 * namespace. NULL with errno. */
static ebpfMonPacketTaps *openTaps(pid_t pid, int socketProgram, int loProgram, uint32_t *netns)
{
    ebpfMonPacketTaps *t = calloc(1, sizeof(*t));
    int err;

    if (!t)
        return NULL;
    t->socketProgram = socketProgram;
    t->lo = -1;
    if (loProgram >= 0 && useTcx(t, pid, loProgram, netns) == 0)
        return t;
    if (useOneSocket(t, pid, netns) == 0) {
        closeLo(t);
        return t;
    }
    err = errno;
    closeTaps(t);
    errno = err;
    return NULL;
}

/* Nonzero: lo has a tcx program. */
static int hasTcx(const ebpfMonPacketTaps *t)
{
    return t->lo >= 0;
}

/* --- the packet filter --- */

#define NEEDED (1ull << CAP_NET_RAW | 1ull << CAP_BPF)
#define RING_LEAST 131072u /* bytes; the smallest ring that has room for a packet of 64 KB at any place */

struct ebpfMonPackets {
    ebpfMonPacketTaps *taps;
    uint32_t netns;
    ebpfMonRing ring;
    uint64_t foreign;       /* connections that the user part found to be foreign */
    uint64_t since;         /* monotonic ns, before it could see the first packet */
    struct ebpfMonWireBpf *skel;
};

static void explainPacketFailure(int err, const char *what, char *why, size_t size)
{
    const char *warning = ebpfMonLibbpfTextGetWarning();

    if (err == EPERM || err == EACCES)
        snprintf(why, size, "%s: no privileges. It needs CAP_NET_RAW and CAP_BPF, and CAP_SYS_ADMIN and CAP_SYS_PTRACE "
                 "for other network namespaces: run as root, or grant them", what);
    else
        snprintf(why, size, "%s: %s%s%s", what, strerror(err), warning[0] ? "; " : "", warning);
}

/* The size of a BPF ring is a power of two. */
static uint32_t roundUpToPower(unsigned bytes)
{
    uint32_t size = RING_LEAST;

    while (size < bytes)
        size *= 2;
    return size;
}

/* Shares the table with the kernel part (eventsSleep.bpf.h). Without a kernel part nobody reads events. 0, or -1 with
 * errno. */
static int shareSleeps(struct bpf_map *sleeps)
{
    int fd = ebpfMonKernelGetTableFd(bpf_map__name(sleeps));

    return fd < 0 ? 0 : bpf_map__reuse_fd(sleeps, fd);
}

static uint64_t makeRandom(void)
{
    uint64_t number;

    return getrandom(&number, sizeof(number), GRND_NONBLOCK) == sizeof(number) ? number : ebpfMonClockMonotonic();
}

static int loadFilter(ebpfMonPackets *packets, unsigned ringBytes)
{
    static const uint16_t ports[] = { 5064, 5065, 5075, 5076 }; /* CA server, repeater; PVA server, broadcast */

    packets->skel = ebpfMonWireBpf__open();
    if (!packets->skel || bpf_program__set_autoload(packets->skel->progs.ebpfmon_wire_lo, ebpfMonPacketTapsHaveTcx()) ||
        bpf_map__set_max_entries(packets->skel->maps.packets, roundUpToPower(ringBytes)) ||
        shareSleeps(packets->skel->maps.data_sleeps) ||
        ebpfMonWireBpf__load(packets->skel))
        return -1;
    packets->skel->bss->keySeed = makeRandom();
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        ebpfMonPacketsExpectPort(packets, ports[i], 1);
    return 0;
}

static int openPacketRing(ebpfMonPackets *packets)
{
    const struct bpf_map *ring = packets->skel->maps.packets;

    return ebpfMonRingOpen(&packets->ring, bpf_map__fd(ring), bpf_map__max_entries(ring),
                           sizeof(struct ebpfMonPacketHead) + EBPFMON_PACKET_MAX, &packets->skel->bss->packetsSleep);
}

/* Tells the filter the time in seconds. Its start does not matter; it is no date. */
static void setClock(ebpfMonPackets *packets)
{
    packets->skel->bss->nowSecs = (uint32_t)(ebpfMonClockMonotonic() / EBPFMON_SECOND_NS);
}

ebpfMonPackets *ebpfMonPacketsOpen(pid_t pid, unsigned ringBytes, char *why, size_t size)
{
    ebpfMonPackets *packets = calloc(1, sizeof(*packets));
    char what[80];

    ebpfMonLibbpfTextBegin();
    if (!packets) {
        explainPacketFailure(ENOMEM, "packets", why, size);
        return NULL;
    }
    if (loadFilter(packets, ringBytes ? ringBytes : EBPFMON_PACKETS_RING)) {
        /* if the verifier refuses the program, errno is EACCES too */
        explainPacketFailure(errno == EACCES && (ebpfMonProcCapabilities() & NEEDED) == NEEDED ? EINVAL : errno,
                       "the packet filter", why, size);
    } else if (setClock(packets), openPacketRing(packets)) {
        snprintf(what, sizeof(what), "the packet ring of %u KiB",
                 bpf_map__max_entries(packets->skel->maps.packets) >> 10);
        explainPacketFailure(errno, what, why, size);
    } else {
        packets->since = ebpfMonClockMonotonic();
        packets->taps = openTaps(pid, bpf_program__fd(packets->skel->progs.ebpfmon_wire),
                                              bpf_program__fd(packets->skel->progs.ebpfmon_wire_lo), &packets->netns);
        if (packets->taps)
            return packets;
        if (pid)
            snprintf(what, sizeof(what), "packets of the network namespace of process %d", (int)pid);
        explainPacketFailure(errno, pid ? what : "packets of this network namespace", why, size);
    }
    ebpfMonPacketsClose(packets);
    return NULL;
}

void ebpfMonPacketsClose(ebpfMonPackets *packets)
{
    if (!packets)
        return;
    closeTaps(packets->taps);
    ebpfMonRingClose(&packets->ring);
    ebpfMonWireBpf__destroy(packets->skel);
    free(packets);
}

void ebpfMonPacketsEnd(ebpfMonPackets *packets)
{
    closeTaps(packets->taps);
    packets->taps = NULL;
}

void ebpfMonPacketsFollow(ebpfMonPackets *packets, pid_t pid)
{
    followTaps(packets->taps, pid);
}

int ebpfMonPacketsUseTcx(const ebpfMonPackets *packets)
{
    return hasTcx(packets->taps);
}

uint64_t ebpfMonPacketsGetSince(const ebpfMonPackets *packets)
{
    return packets->since;
}

uint32_t ebpfMonPacketsGetNetns(const ebpfMonPackets *packets)
{
    return packets->netns;
}

ebpfMonRing *ebpfMonPacketsGetRing(ebpfMonPackets *packets)
{
    return &packets->ring;
}

typedef struct {
    ebpfMonPacketFn packet;
    void    *arg;
    uint64_t unixOffset;
    unsigned urgent;
} receiver;

static void onEntry(void *arg, const void *data, size_t size)
{
    const struct ebpfMonPacketHead *head = data;
    receiver *to = arg;

    if (size < sizeof(*head))
        return;
    to->urgent += !head->canWait;
    if (head->len > size - sizeof(*head))
        return;
    to->packet(to->arg, &(ebpfMonPacket){
        .time = head->ktime + to->unixOffset,
        .ip = (const uint8_t *)(head + 1),
        .len = head->len,
        .wireLen = head->wireLen,
        .isOutside = head->isOutside,
        .took = (uint64_t)head->took * EBPFMON_PACKET_TIMED,
    });
}

void ebpfMonPacketsRead(ebpfMonPackets *packets, ebpfMonPacketFn packet, void *arg, ebpfMonPacketsLook *look)
{
    receiver to = { packet, arg, ebpfMonClockUnixOffset(), 0 };

    setClock(packets);
    look->packets = ebpfMonRingRead(&packets->ring, onEntry, &to, &look->isWhole);
    look->urgent = to.urgent;
}

void ebpfMonPacketsExpectPort(ebpfMonPackets *packets, uint16_t port, int expected)
{
    int fd = bpf_map__fd(packets->skel->maps.ports);
    uint32_t word = port / 64;
    uint64_t bits = 0, bit = 1ull << port % 64;

    if (bpf_map_lookup_elem(fd, &word, &bits) == 0 && !(bits & bit) == !expected)
        return;
    bits = expected ? bits | bit : bits & ~bit;
    bpf_map_update_elem(fd, &word, &bits, BPF_ANY);
}

void ebpfMonPacketsSetVerdict(ebpfMonPackets *packets, const struct ebpfMonPeer *connection, int wanted)
{
    int fd = bpf_map__fd(packets->skel->maps.conns);
    struct ebpfMonConnKey key;
    struct ebpfMonConn conn = { .state = EBPFMON_CONN_MIDDLE };

    setClock(packets);
    if (ebpfMonIsIPv6(connection->addr6))
        ebpfMonConnKeySet6(&key, packets->skel->bss->keySeed, connection->addr6, connection->port, connection->saddr6,
                           connection->sport);
    else
        ebpfMonConnKeySet(&key, connection->addr, connection->port, connection->saddr, connection->sport);
    bpf_map_lookup_elem(fd, &key, &conn);
    conn.state = wanted ? EBPFMON_CONN_WANTED : EBPFMON_CONN_FOREIGN;
    conn.since = packets->skel->bss->nowSecs;
    if (!wanted && !conn.counted) {
        conn.counted = 1;
        packets->foreign++;
    }
    bpf_map_update_elem(fd, &key, &conn, BPF_ANY);
    __atomic_fetch_add(&packets->skel->bss->changes, 1, __ATOMIC_SEQ_CST); /* after the verdict can be found */
}

void ebpfMonPacketsGetStats(ebpfMonPackets *packets, ebpfMonPacketsStats *stats)
{
    struct ebpfMonPacketCounts counts;
    const struct bpf_program *program[] = { packets->skel->progs.ebpfmon_wire, packets->skel->progs.ebpfmon_wire_lo };
    uint32_t zero = 0;

    ebpfMonPerCpuSum(packets->skel->maps.counts, &zero, &counts, sizeof(counts));
    *stats = (ebpfMonPacketsStats){
        .seen = counts.seen,
        .passed = counts.passed,
        .foreign = counts.foreign + packets->foreign,
        .dropped = counts.dropped,
    };
    for (unsigned i = 0; i < sizeof(program) / sizeof(program[0]); i++) {
        struct bpf_prog_info info = { 0 };
        uint32_t infoSize = sizeof(info);

        if (bpf_program__fd(program[i]) < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(program[i]), &info, &infoSize))
            continue;
        stats->ns += info.run_time_ns;
        stats->runs += info.run_cnt;
    }
}
