/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What the packet filter (wire.bpf.c) and the user part (probe/packets.c) share. Addresses and ports are in network
 * byte order; they are only compared.
 */
#ifndef EBPFMON_PACKET_H
#define EBPFMON_PACKET_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EBPFMON_PACKET_MAX   65536 /* bytes of a packet that are copied, at most; a power of two */
#define EBPFMON_PACKET_MIN   128   /* bytes in the smallest entry of the ring; a power of two */
#define EBPFMON_CONNS        32768 /* connections that are remembered; a new one replaces the one that was unused for
                                    * the longest time */
#define EBPFMON_PORT_WORDS   (65536 / 64)
#define EBPFMON_TRIES        8     /* data packets in which a connection must show what it is */
#define EBPFMON_TRIES_KNOWN  1000  /* … if CA or PVA is expected at its port */
#define EBPFMON_SHORT        8     /* bytes that show what a connection is; a shorter data packet counts as 1 /
                                    * EBPFMON_SHORT */
#define EBPFMON_PACKET_TIMED 16    /* the program measures how long it takes for one packet in so many */
#define EBPFMON_FOREIGN_SECS 60    /* s; then a foreign connection is checked again, in case the verdict was wrong */

enum ebpfMonConnState {
    EBPFMON_CONN_MIDDLE,  /* its begin was not seen: a message may begin in any of its packets, or in none */
    EBPFMON_CONN_FRESH,   /* its SYN was seen: the first data in each direction begin with a message */
    EBPFMON_CONN_WANTED,
    EBPFMON_CONN_FOREIGN
};

/* The key of a connection; both directions have the same. */
struct ebpfMonConnKey {
    __u32 addr[2];
    __u16 port[2];
};

/* Map "conns". There is no lock: packets of one connection on two CPUs can cost it one try, not more. */
struct ebpfMonConn {
    __u32 since;   /* FOREIGN: the second in which that was found */
    __u32 first[2];/* FRESH: TCP sequence number of the first byte, by direction */
    /* FRESH: the first bytes of each direction, if they came in pieces. The verifier wants EBPFMON_SHORT bytes behind
     * the last of them, since it does not know that a copy ends with its direction (completeHead of wire.bpf.c). */
    __u8  head[2 * EBPFMON_SHORT];
    __u16 tries;   /* data packets so far, multiplied by EBPFMON_SHORT */
    __u8  state;   /* enum ebpfMonConnState */
    __u8  known;   /* FRESH: bit d is set if first[d] is valid */
    __u8  client;  /* FRESH: the direction in which the client sends */
    __u8  ended;   /* bit d is set if direction d has sent its FIN */
    __u8  counted; /* nonzero: it was counted as foreign */
    __u8  pad;
    __u8  headHave[2]; /* FRESH: the bytes of "head" that have come, a bit each, by direction */
    __u8  pad2[2];
};

/* Map "counts", one element for each CPU. See ebpfMonPacketsStats. */
struct ebpfMonPacketCounts {
    __u64 seen, passed, foreign;
    __u64 dropped; /* packets that passed, and were lost because the ring was full */
    __u64 begin;   /* no count: when the program began with the present packet, if that is timed; else 0 */
};

/* Variable "packetsSleep": which packets wake the reader. */
enum ebpfMonPacketsSleep {
    EBPFMON_PACKETS_AWAKE, /* none */
    EBPFMON_PACKETS_ALL,   /* any */
    EBPFMON_PACKETS_URGENT /* those that cannot wait (wireWaits.bpf.h), or any if many wait */
};

/* An entry of the ring "packets". */
struct ebpfMonPacketHead {
    __u64 ktime;   /* monotonic ns; when the packet came */
    __u32 len;     /* bytes of the packet that follow */
    __u32 wireLen; /* bytes of the whole packet */
    __u16 canWait; /* nonzero: it need not be read at once (wireWaits.bpf.h) */
    __u16 isOutside; /* nonzero: it came in by another device than lo */
    __u32 took;    /* ns that the program took before it sent the packet, if a server of this host sends it; 0: it does
                    * not, or this one was not timed */
};

_Static_assert(sizeof(struct ebpfMonPacketHead) == 24, "ebpfMonPacketHead");
_Static_assert(sizeof(struct ebpfMonConnKey) == 12, "ebpfMonConnKey");
_Static_assert(sizeof(struct ebpfMonConn) == 40, "ebpfMonConn");
_Static_assert(__builtin_offsetof(struct ebpfMonConn, tries) + EBPFMON_SHORT <= sizeof(struct ebpfMonConn),
               "ebpfMonConn.head");

/* 32 bits of an IPv6 address. */
static inline __u32 ebpfMonConnHash(__u64 h, const __u32 addr6[4])
{
    for (int i = 0; i < 4; i++) {
        h = (h ^ addr6[i]) * 0xff51afd7ed558ccdull; /* the finalizer of MurmurHash3 */
        h ^= h >> 32;
    }
    return (__u32)h;
}

/* Sets the key of a packet from src to dst. Returns its direction, 0 or 1. */
static inline __u32 ebpfMonConnKeySet(struct ebpfMonConnKey *key, __u32 src, __u16 srcPort, __u32 dst, __u16 dstPort)
{
    __u32 d = src == dst ? srcPort > dstPort : src > dst;

    key->addr[0] = d ? dst : src;
    key->addr[1] = d ? src : dst;
    key->port[0] = d ? dstPort : srcPort;
    key->port[1] = d ? srcPort : dstPort;
    return d;
}

/* The same of IPv6. The key has a hash of each address, so that packets of IPv4 pay nothing for longer ones. "seed" is
 * random: nobody can choose addresses with the key of another connection. Only the filter's verdicts depend on it. A
 * function of BPF has five arguments at most, and not every clang inlines this one by itself. */
__attribute__((always_inline)) static inline __u32 ebpfMonConnKeySet6(struct ebpfMonConnKey *key, __u64 seed,
                                                                      const __u32 src[4], __u16 srcPort,
                                                                      const __u32 dst[4], __u16 dstPort)
{
    return ebpfMonConnKeySet(key, ebpfMonConnHash(seed, src), srcPort, ebpfMonConnHash(seed, dst), dstPort);
}

#endif
