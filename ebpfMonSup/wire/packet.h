/* SPDX-License-Identifier: BSD-3-Clause */
/* One IPv4 packet: whose it is, and where its TCP or UDP payload lies. */
#ifndef EBPFMON_PACKET_H
#define EBPFMON_PACKET_H

#include <stddef.h>
#include <stdint.h>

#define EBPFMON_TCP_FIN 0x01
#define EBPFMON_TCP_SYN 0x02
#define EBPFMON_TCP_RST 0x04
#define EBPFMON_TCP_ACK 0x10

typedef enum {
    ebpfMonPacketOther,    /* not IPv4 TCP or UDP, or it contradicts itself */
    ebpfMonPacketFragment, /* of an IP datagram: these are not put together */
    ebpfMonPacketTcp,
    ebpfMonPacketUdp
} ebpfMonPacketKind;

typedef struct {
    uint32_t from, to;         /* addresses and ports in network byte order */
    uint16_t fromPort, toPort;
    uint32_t seq, ack;         /* TCP, host byte order */
    unsigned flags;            /* EBPFMON_TCP_… */
    const uint8_t *data;
    size_t   have;             /* bytes of payload that are here */
    size_t   wire;             /* … that were sent: more when the packet was snapped */
} ebpfMonSegment;

ebpfMonPacketKind ebpfMonPacketParse(const uint8_t *ip, size_t len, size_t wireLen, ebpfMonSegment *segment);

#endif
