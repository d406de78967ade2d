/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See packets.h. A packet socket with a TPACKET_V3 ring (packet(7) and the kernel's packet_mmap documentation):
 * the kernel fills blocks with packets, and hands a block over when it is full or has waited for RETIRE_MS.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cantProceed.h>

#include "common/clock.h"
#include "probe/libbpfText.h"
#include "probe/packets.h"
#include "ebpfMonPacket.h"
#include "ebpfMonWireBpf.skel.h"

/* Room for a packet of 64 KB. Not more: with few packets a block is used up every RETIRE_MS however full it is, so
 * many small ones bridge a longer pause of the reader than few large ones. */
#define BLOCK_BYTES (128u << 10)
#define FRAME_BYTES 2048u /* V3 packs frames of any length; this only has to divide the block */
#define RETIRE_MS   4

struct ebpfMonPackets {
    int      fd;
    uint32_t netns;
    uint8_t *ring;
    unsigned blocks, at;    /* the block that comes next */
    uint64_t dropped;       /* reading it in the kernel clears it */
    uint64_t foreign;       /* by verdict */
    struct ebpfMonWireBpf *skel;
};

static void explain(int err, const char *what, char *why, size_t size)
{
    const char *warning = ebpfMonLibbpfTextGetWarning();

    if (err == EPERM || err == EACCES)
        snprintf(why, size, "%s: no privileges. It needs CAP_NET_RAW and CAP_BPF, and CAP_SYS_ADMIN and CAP_SYS_PTRACE "
                 "for other network namespaces: run as root, or grant them", what);
    else
        snprintf(why, size, "%s: %s%s%s", what, strerror(err), warning[0] ? "; " : "", warning);
}

/* The socket of the namespace "ns", -1: of our own. -1 with errno. */
static int socketIn(int ns)
{
    /* Without a protocol it receives nothing until it is bound. */
    if (ns < 0)
        return socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    int fd = -1, err, own = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

    if (own < 0)
        return -1;
    if (setns(ns, CLONE_NEWNET) == 0) {
        fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        err = errno;
        /* All that this thread did from now on would happen in the wrong network. */
        if (setns(own, CLONE_NEWNET))
            cantProceed("ebpfMon: this thread cannot return to its own network namespace: %s\n", strerror(errno));
        errno = err;
    }
    err = errno;
    close(own);
    errno = err;
    return fd;
}

static int openSocket(ebpfMonPackets *packets, pid_t pid)
{
    char path[48];
    struct stat st, own;
    int ns, err, elsewhere;

    snprintf(path, sizeof(path), pid ? "/proc/%d/ns/net" : "/proc/thread-self/ns/net", (int)pid);
    ns = open(path, O_RDONLY | O_CLOEXEC);
    if (ns < 0)
        return -1;
    if (fstat(ns, &st) == 0) {
        packets->netns = (uint32_t)st.st_ino;
        elsewhere = pid && (stat("/proc/thread-self/ns/net", &own) || own.st_ino != st.st_ino);
        packets->fd = socketIn(elsewhere ? ns : -1);
    }
    err = errno;
    close(ns);
    errno = err;
    return packets->fd < 0 ? -1 : 0;
}

static int loadFilter(ebpfMonPackets *packets)
{
    static const uint16_t ports[] = { 5064, 5065, 5075, 5076 }; /* CA server, repeater; PVA server, broadcast */

    packets->skel = ebpfMonWireBpf__open_and_load();
    if (!packets->skel)
        return -1;
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        ebpfMonPacketsPort(packets, ports[i], 1);
    return 0;
}

static int mapRing(ebpfMonPackets *packets, unsigned bytes)
{
    int version = TPACKET_V3, filter = bpf_program__fd(packets->skel->progs.ebpfmon_wire);
    struct sockaddr_ll all = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
    struct tpacket_req3 req = { .tp_block_size = BLOCK_BYTES, .tp_frame_size = FRAME_BYTES,
                                .tp_retire_blk_tov = RETIRE_MS };
    void *ring;

    packets->blocks = bytes / BLOCK_BYTES < 2 ? 2 : bytes / BLOCK_BYTES;
    req.tp_block_nr = packets->blocks;
    req.tp_frame_nr = packets->blocks * (BLOCK_BYTES / FRAME_BYTES);
    if (setsockopt(packets->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version))
        || setsockopt(packets->fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req)))
        return -1;
    ring = mmap(NULL, (size_t)packets->blocks * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, packets->fd, 0);
    if (ring == MAP_FAILED)
        return -1;
    packets->ring = ring;
    /* The filter first: nothing must come that it has not seen. */
    if (setsockopt(packets->fd, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof(filter)))
        return -1;
    return bind(packets->fd, (struct sockaddr *)&all, sizeof(all));
}

/* Seconds for the kernel part; the year does not matter, only that it goes on. */
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
        explain(ENOMEM, "packets", why, size);
        return NULL;
    }
    packets->fd = -1;
    if (openSocket(packets, pid)) {
        if (pid)
            snprintf(what, sizeof(what), "packets of the network namespace of process %d", (int)pid);
        explain(errno, pid ? what : "packets of this network namespace", why, size);
    } else if (loadFilter(packets)) {
        explain(errno, "the packet filter", why, size);
    } else if (setClock(packets), mapRing(packets, ringBytes ? ringBytes : EBPFMON_PACKETS_RING)) {
        snprintf(what, sizeof(what), "the packet ring of %u KiB", packets->blocks * (BLOCK_BYTES >> 10));
        explain(errno, what, why, size);
    } else {
        return packets;
    }
    ebpfMonPacketsClose(packets);
    return NULL;
}

void ebpfMonPacketsClose(ebpfMonPackets *packets)
{
    if (!packets)
        return;
    if (packets->ring)
        munmap(packets->ring, (size_t)packets->blocks * BLOCK_BYTES);
    if (packets->fd >= 0)
        close(packets->fd);
    ebpfMonWireBpf__destroy(packets->skel);
    free(packets);
}

uint32_t ebpfMonPacketsNetns(const ebpfMonPackets *packets)
{
    return packets->netns;
}

int ebpfMonPacketsFd(const ebpfMonPackets *packets)
{
    return packets->fd;
}

/* The packets of one block. Its numbers are the kernel's own; they are checked all the same, for a wrong one would
 * lead out of the ring. */
static int readBlock(const struct tpacket_block_desc *block, ebpfMonPacketFn packet, void *arg)
{
    const uint8_t *base = (const uint8_t *)block;
    size_t at = block->hdr.bh1.offset_to_first_pkt;
    uint32_t count = block->hdr.bh1.num_pkts, n;

    for (n = 0; n < count && at <= BLOCK_BYTES - sizeof(struct tpacket3_hdr); n++) {
        const struct tpacket3_hdr *frame = (const struct tpacket3_hdr *)(base + at);
        size_t left = BLOCK_BYTES - at;

        if (frame->tp_net > left || frame->tp_snaplen > left - frame->tp_net)
            break;
        packet(arg, frame->tp_sec * EBPFMON_SECOND_NS + frame->tp_nsec, base + at + frame->tp_net, frame->tp_snaplen,
               frame->tp_len);
        if (!frame->tp_next_offset) {
            n++;
            break;
        }
        at += frame->tp_next_offset;
    }
    return (int)n;
}

int ebpfMonPacketsPoll(ebpfMonPackets *packets, int ms, ebpfMonPacketFn packet, void *arg)
{
    struct pollfd wait = { .fd = packets->fd, .events = POLLIN };
    int n = 0, err = 0;
    socklen_t size = sizeof(err);

    setClock(packets);
    if (poll(&wait, 1, ms) < 0)
        return errno == EINTR ? 0 : -1;
    if (wait.revents & POLLERR) {
        getsockopt(packets->fd, SOL_SOCKET, SO_ERROR, &err, &size); /* reading clears it */
        if (err) {
            errno = err;
            return -1;
        }
    }
    for (unsigned i = 0; i < packets->blocks; i++) {
        struct tpacket_block_desc *block =
            (struct tpacket_block_desc *)(packets->ring + (size_t)packets->at * BLOCK_BYTES);

        if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
            break;
        n += readBlock(block, packet, arg);
        __atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        packets->at = (packets->at + 1) % packets->blocks;
    }
    return n;
}

void ebpfMonPacketsPort(ebpfMonPackets *packets, uint16_t port, int expected)
{
    int fd = bpf_map__fd(packets->skel->maps.ports);
    uint32_t word = port / 64;
    uint64_t bits = 0, bit = 1ull << port % 64;

    bpf_map_lookup_elem(fd, &word, &bits);
    bits = expected ? bits | bit : bits & ~bit;
    bpf_map_update_elem(fd, &word, &bits, BPF_ANY);
}

void ebpfMonPacketsVerdict(ebpfMonPackets *packets, const struct ebpfMonPeer *connection, int wanted)
{
    int fd = bpf_map__fd(packets->skel->maps.conns);
    struct ebpfMonConnKey key;
    struct ebpfMonConn conn = { .state = EBPFMON_CONN_MIDDLE };

    setClock(packets);
    ebpfMonConnKeySet(&key, connection->addr, connection->port, connection->saddr, connection->sport);
    bpf_map_lookup_elem(fd, &key, &conn);
    conn.state = wanted ? EBPFMON_CONN_WANTED : EBPFMON_CONN_FOREIGN;
    conn.since = packets->skel->bss->nowSecs;
    if (!wanted && !conn.counted) {
        conn.counted = 1;
        packets->foreign++;
    }
    bpf_map_update_elem(fd, &key, &conn, BPF_ANY);
}

void ebpfMonPacketsStat(ebpfMonPackets *packets, ebpfMonPacketsStats *stats)
{
    int cpus = libbpf_num_possible_cpus();
    struct ebpfMonPacketCounts *each = cpus > 0 ? calloc((size_t)cpus, sizeof(*each)) : NULL;
    struct tpacket_stats_v3 ring;
    socklen_t size = sizeof(ring);
    struct bpf_prog_info info = { 0 };
    uint32_t zero = 0, infoSize = sizeof(info);

    memset(stats, 0, sizeof(*stats));
    if (each && bpf_map_lookup_elem(bpf_map__fd(packets->skel->maps.counts), &zero, each) == 0)
        for (int c = 0; c < cpus; c++) {
            stats->seen += each[c].seen;
            stats->passed += each[c].passed;
            stats->foreign += each[c].foreign;
        }
    free(each);
    stats->foreign += packets->foreign;
    if (getsockopt(packets->fd, SOL_PACKET, PACKET_STATISTICS, &ring, &size) == 0)
        packets->dropped += ring.tp_drops;
    stats->dropped = packets->dropped;
    if (bpf_obj_get_info_by_fd(bpf_program__fd(packets->skel->progs.ebpfmon_wire), &info, &infoSize) == 0) {
        stats->ns = info.run_time_ns;
        stats->runs = info.run_cnt;
    }
}
