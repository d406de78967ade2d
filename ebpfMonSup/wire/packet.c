/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/bigEndian.h"
#include "wire/packet.h"

#define PROTO_TCP 6
#define PROTO_UDP 17
#define IP_MIN  20
#define TCP_MIN 20
#define UDP_LEN 8

ebpfMonPacketKind ebpfMonPacketParse(const uint8_t *ip, size_t len, size_t wireLen, ebpfMonSegment *s)
{
    size_t ipLen, total, head;
    const uint8_t *p;
    int proto;

    memset(s, 0, sizeof *s);
    s->data = ip;
    if (len > wireLen)
        len = wireLen;
    if (len < IP_MIN || ip[0] >> 4 != 4)
        return ebpfMonPacketOther;
    ipLen = (size_t)(ip[0] & 0xf) * 4;
    total = ebpfMonBigEndianGet16(ip + 2);
    proto = ip[9];
    if (proto != PROTO_TCP && proto != PROTO_UDP)
        return ebpfMonPacketOther;
    /* A packet of more than 64 KB has 0 here (BIG TCP). A short frame has padding after the datagram. */
    if (total == 0 || total > wireLen)
        total = wireLen;
    if (ipLen < IP_MIN || ipLen > len || ipLen > total)
        return ebpfMonPacketOther;
    if (ebpfMonBigEndianGet16(ip + 6) & 0x3fff) /* there are more fragments, or this is not the first */
        return ebpfMonPacketFragment;
    if (len > total)
        len = total;
    memcpy(&s->from, ip + 12, 4);
    memcpy(&s->to, ip + 16, 4);
    p = ip + ipLen;
    len -= ipLen;
    total -= ipLen;
    if (len < (proto == PROTO_TCP ? TCP_MIN : UDP_LEN))
        return ebpfMonPacketOther;
    memcpy(&s->fromPort, p, 2);
    memcpy(&s->toPort, p + 2, 2);
    if (proto == PROTO_UDP) {
        head = UDP_LEN;
        if (ebpfMonBigEndianGet16(p + 4) < UDP_LEN || ebpfMonBigEndianGet16(p + 4) > total)
            return ebpfMonPacketOther;
        total = ebpfMonBigEndianGet16(p + 4);
    } else {
        head = (size_t)(p[12] >> 4) * 4;
        if (head < TCP_MIN || head > total)
            return ebpfMonPacketOther;
        s->seq = ebpfMonBigEndianGet32(p + 4);
        s->ack = ebpfMonBigEndianGet32(p + 8);
        s->flags = p[13];
    }
    s->wire = total - head;
    if (len > head) {
        s->data = p + head;
        s->have = len - head < s->wire ? len - head : s->wire;
    }
    return proto == PROTO_TCP ? ebpfMonPacketTcp : ebpfMonPacketUdp;
}
