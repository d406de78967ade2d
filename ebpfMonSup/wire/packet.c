/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "common/bigEndian.h"
#include "ebpfMonEvent.h" /* ebpfMonShortAddress */
#include "wire/packet.h"

#define PROTO_TCP 6
#define PROTO_UDP 17
#define PROTO_FRAGMENT 44 /* of IPv6 */
#define IP_MIN  20
#define IP6_LEN 40
#define TCP_MIN 20
#define UDP_LEN 8
#define FRAME_MAX 1500 /* bytes of IP in a usual Ethernet frame */

/* TCP or UDP behind the IP header: "len" of its "total" bytes, at least its header. */
static ebpfMonPacketKind parseRest(int proto, const uint8_t *p, size_t len, size_t total, ebpfMonSegment *s)
{
    size_t head = UDP_LEN;

    memcpy(&s->fromPort, p, 2);
    memcpy(&s->toPort, p + 2, 2);
    if (proto == PROTO_UDP) {
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

/* An IPv6 packet without extension headers. */
static ebpfMonPacketKind parseIPv6(const uint8_t *ip, size_t len, size_t wireLen, ebpfMonSegment *s)
{
    size_t total = ebpfMonBigEndianGet16(ip + 4);
    const uint8_t *p = ip + IP6_LEN;

    if (total == 0 || total > wireLen - IP6_LEN) /* BIG TCP has 0 */
        total = wireLen - IP6_LEN;
    len = len - IP6_LEN < total ? len - IP6_LEN : total;
    if (ip[6] == PROTO_FRAGMENT)
        return ebpfMonPacketFragment;
    if ((ip[6] != PROTO_TCP && ip[6] != PROTO_UDP) || len < (ip[6] == PROTO_TCP ? TCP_MIN : UDP_LEN))
        return ebpfMonPacketOther;
    memcpy(s->from6, ip + 8, sizeof s->from6);
    memcpy(s->to6, ip + 24, sizeof s->to6);
    s->from = ebpfMonShortAddress(s->from6);
    s->to = ebpfMonShortAddress(s->to6);
    return parseRest(ip[6], p, len, total, s);
}

ebpfMonPacketKind ebpfMonPacketParse(const uint8_t *ip, size_t len, size_t wireLen, ebpfMonSegment *s)
{
    size_t ipLen, total;
    const uint8_t *p;
    int proto;

    memset(s, 0, sizeof *s);
    s->data = ip;
    if (len > wireLen)
        len = wireLen;
    if (len >= IP6_LEN && ip[0] >> 4 == 6)
        return parseIPv6(ip, len, wireLen, s);
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
    return parseRest(proto, p, len, total, s);
}

static uint32_t addWords(uint32_t sum, const uint8_t *p, size_t n)
{
    size_t i = 0;

    for (; i + 1 < n; i += 2)
        sum += ebpfMonBigEndianGet16(p + i);
    return i < n ? sum + ((uint32_t)p[i] << 8) : sum;
}

static uint16_t foldSum(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

int ebpfMonPacketHasWrongSum(const uint8_t *ip, size_t len, size_t wireLen)
{
    size_t ipLen = IP6_LEN, total, size;
    uint32_t pseudo;
    int isIPv6 = len >= IP6_LEN && ip[0] >> 4 == 6;

    if (isIPv6) {
        if (ip[6] != PROTO_TCP)
            return 0;
        total = ipLen + ebpfMonBigEndianGet16(ip + 4);
    } else {
        if (len < IP_MIN || ip[0] >> 4 != 4 || ip[9] != PROTO_TCP || (ebpfMonBigEndianGet16(ip + 6) & 0x3fff))
            return 0;
        ipLen = (size_t)(ip[0] & 0xf) * 4;
        total = ebpfMonBigEndianGet16(ip + 2);
    }
    if (total > FRAME_MAX || total > len || total > wireLen || ipLen < IP_MIN || total < ipLen + TCP_MIN)
        return 0;
    size = total - ipLen;
    pseudo = addWords(PROTO_TCP + (uint32_t)size, ip + (isIPv6 ? 8 : 12), isIPv6 ? 32 : 8);
    return ebpfMonBigEndianGet16(ip + ipLen + 16) != foldSum(pseudo) &&
           foldSum(addWords(pseudo, ip + ipLen, size)) != 0xffff;
}
