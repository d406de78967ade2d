/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * What the packet filter (wire.bpf.c) and the user part (probe/packets.c) share. Addresses and ports are in
 * network byte order and only compared, never reckoned with.
 */
#ifndef EBPFMON_PACKET_H
#define EBPFMON_PACKET_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define EBPFMON_PACKET_MAX   65536 /* bytes of a packet that are copied; powers of two */
#define EBPFMON_PACKET_MIN   128   /* … for which there is room in the smallest entry */
#define EBPFMON_CONNS        32768 /* connections remembered; the longest unused one makes room */
#define EBPFMON_PORT_WORDS   (65536 / 64)
#define EBPFMON_TRIES        8     /* data packets in which an unknown connection may show what it is */
#define EBPFMON_TRIES_KNOWN  1000  /* … on a port where CA or PVA is expected */
#define EBPFMON_SHORT        8     /* bytes that tell what it is; data packets that have less count as 1 / EBPFMON_SHORT of one */
#define EBPFMON_FOREIGN_SECS 60    /* then a foreign connection is looked at again, in case the verdict was wrong */

enum ebpfMonConnState {
    EBPFMON_CONN_MIDDLE,  /* met when it was under way: a message may begin in any of its packets, or in none */
    EBPFMON_CONN_FRESH,   /* its SYN was seen: the first data in either direction begins with a message */
    EBPFMON_CONN_WANTED,
    EBPFMON_CONN_FOREIGN
};

/* A connection, both of whose directions have one key. */
struct ebpfMonConnKey {
    __u32 addr[2];
    __u16 port[2];
};

/* Map "conns". Written without a lock: packets of one connection on two CPUs can cost a try, no more. */
struct ebpfMonConn {
    __u32 since;   /* EBPFMON_CONN_FOREIGN: second in which that was found */
    __u32 first[2];/* FRESH: sequence number of the first byte, by direction */
    __u16 tries;   /* data packets so far, times EBPFMON_SHORT */
    __u8  state;   /* enum ebpfMonConnState */
    __u8  known;   /* FRESH: bit d: first[d] is valid */
    __u8  client;  /* FRESH: the direction in which the client sends */
    __u8  ended;   /* bit d: that direction has sent its FIN */
    __u8  counted; /* it has been counted as foreign */
    __u8  pad;
    __u8  headHave[2]; /* FRESH: which bytes of "head" are here, a bit each, by direction */
    __u8  pad2[2];
    __u8  head[2 * EBPFMON_SHORT]; /* FRESH: the first bytes, if they came in pieces */
};

/* Map "counts", per CPU. */
struct ebpfMonPacketCounts {
    __u64 seen, passed, foreign;
    __u64 dropped; /* of those that passed: the ring was full */
};

/* An entry of the ring "packets". */
struct ebpfMonPacketHead {
    __u64 ktime;   /* monotonic ns, when the packet came */
    __u32 len;     /* bytes that follow */
    __u32 wireLen; /* … and that it has */
};

_Static_assert(sizeof(struct ebpfMonPacketHead) == 16, "ebpfMonPacketHead");
_Static_assert(sizeof(struct ebpfMonConnKey) == 12, "ebpfMonConnKey");
_Static_assert(sizeof(struct ebpfMonConn) == 40, "ebpfMonConn");

/* Fills in the key of a packet from src to dst; returns its direction, 0 or 1. */
static inline __u32 ebpfMonConnKeySet(struct ebpfMonConnKey *key, __u32 src, __u16 srcPort, __u32 dst, __u16 dstPort)
{
    __u32 d = src == dst ? srcPort > dstPort : src > dst;

    key->addr[0] = d ? dst : src;
    key->addr[1] = d ? src : dst;
    key->port[0] = d ? dstPort : srcPort;
    key->port[1] = d ? srcPort : dstPort;
    return d;
}

#endif
