/* SPDX-License-Identifier: BSD-3-Clause */
/* One IP packet: its addresses, and its TCP or UDP payload. */
#ifndef EBPFMON_WIRE_PACKET_H
#define EBPFMON_WIRE_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_TCP_FIN 0x01
#define EBPFMON_TCP_SYN 0x02
#define EBPFMON_TCP_RST 0x04
#define EBPFMON_TCP_ACK 0x10
#define EBPFMON_TCP_URG 0x20

typedef enum {
    ebpfMonPacketOther,    /* neither TCP nor UDP, or it contradicts itself */
    ebpfMonPacketFragment, /* a fragment of an IP datagram; we do not put fragments together */
    ebpfMonPacketTcp,
    ebpfMonPacketUdp
} ebpfMonPacketKind;

typedef struct {
    uint32_t from, to;         /* addresses and ports in network byte order, as in struct ebpfMonPeer */
    uint32_t from6[4], to6[4];
    uint16_t fromPort, toPort;
    uint32_t seq, ack;         /* of TCP, in host byte order */
    unsigned flags;            /* EBPFMON_TCP_… */
    const uint8_t *data;
    size_t   have;             /* bytes of the payload that we have */
    size_t   wire;             /* bytes of the payload that were sent; more than "have" if the packet was cut */
} ebpfMonSegment;

/* Reads the packet at "ip", its IP header: "len" of its "wireLen" bytes. "segment" points into the packet. Any
 * thread. */
ebpfMonPacketKind ebpfMonPacketParse(const uint8_t *ip, size_t len, size_t wireLen, ebpfMonSegment *segment);

/*
 * Nonzero: a TCP packet with a wrong checksum, which no host accepts. 0 if the checksum is right, and also if
 * - it is not computed yet, and has the pseudo header only (CHECKSUM_PARTIAL, skbuff.h): on lo, from containers and
 *   virtual machines, and when the kernel has put packets together (GRO), also packets from outside;
 * - the packet was cut;
 * - it is larger than a frame: a network card may have put several together without a new sum (LRO).
 */
int ebpfMonPacketHasWrongSum(const uint8_t *ip, size_t len, size_t wireLen);

#endif
