// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Selects the packets of a network namespace that may be Channel Access or pvAccess. The programs see every packet of
 * the namespace, so they must be quick for packets of others: a pure ACK costs one read of the headers, and data of a
 * connection that is known to be foreign one comparison more (isStillForeign). Two programs do the same: a filter for
 * packet sockets, and one for tcx (probe/packetTaps.h).
 *
 * This is a separate object file. Each network namespace has a copy with its own tables. Kernel 5.10 and later.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "ebpfMonPacket.h"
#include "wake.bpf.h"

#define LOOPBACK_IFINDEX 1      /* of lo in every namespace: loopback_net_init() of the kernel checks it */
#define LINK_HEADER      14     /* bytes before the IP header on lo: eth_type_trans() in loopback_xmit() */
#define FRAGMENT         0x3fff /* bits of iphdr.frag_off: there are more fragments, or this is not the first */
#define CA_LAST          27     /* caProto.h: CA_PROTO_SERVER_DISCONN */
#define CA_VERSION       0
#define PVA_MAGIC        0xca
#define PVA_VERSION      4      /* the newest that we know: the protocol revision of the specification */
#define PVA_RESERVED     0x0e   /* bits of the flags that must be 0 */
#define PVA_LAST         23

/* Commands of caProto.h without a payload (VERSION, EVENTS_OFF, EVENTS_ON, READ_SYNC, CLEAR_CHANNEL, ACCESS_RIGHTS,
 * ECHO, CREATE_CH_FAIL, SERVER_DISCONN). */
#define CA_NO_PAYLOAD \
    (1u << 0 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 12 | 1u << 22 | 1u << 23 | 1u << 26 | 1u << 27)

struct headers {
    struct iphdr ip;
    struct tcphdr tcp; /* UDP has its ports at the same place as TCP */
};

#define UDP_MIN 28 /* bytes of the IP and the UDP header: a short datagram has no more */

/* What the first bytes of a packet's data look like. */
enum looks { NO, PERHAPS /* too short to tell */, CA, CA_HELLO, PVA };

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, EBPFMON_CONNS);
    __type(key, struct ebpfMonConnKey);
    __type(value, struct ebpfMonConn);
} conns SEC(".maps");

/* Connections that were foreign when this CPU looked last: a comparison here costs less than a lookup in "conns". */
struct foreign {
    struct ebpfMonConnKey key;
    __u32 since;    /* of struct ebpfMonConn */
    __u32 serial;   /* value of "changes", before that look */
};

#define FOREIGN_PLACES 256 /* a power of two */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, FOREIGN_PLACES);
    __type(key, __u32);
    __type(value, struct foreign);
} foreigns SEC(".maps");

/* A new number with each SYN, because a new connection can have the addresses and ports of an old one; and when the
 * user part has said what a connection is. */
volatile __u32 changes;

/* The ports where CA or PVA is expected: a bit for each port, in host byte order. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, EBPFMON_PORT_WORDS);
    __type(key, __u32);
    __type(value, __u64);
} ports SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct ebpfMonPacketCounts);
} counts SEC(".maps");

/* The packets that passed: a struct ebpfMonPacketHead, then the packet from its IP header on. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 << 20);
} packets SEC(".maps");

/* Nonzero: the reader sleeps (wake.bpf.h). The user part sets it. */
volatile __u32 packetsSleep;

/* The time in seconds, set by the user part: to read a clock for each foreign packet would cost more than everything
 * else. */
volatile __u32 nowSecs;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static __always_inline int isExpected(__be16 port)
{
    __u32 host = bpf_ntohs(port), word = host / 64;
    __u64 *bits = bpf_map_lookup_elem(&ports, &word);

    return bits && (*bits >> (host & 63) & 1);
}

static __always_inline struct foreign *findPlace(const struct ebpfMonConnKey *key)
{
    __u32 at = key->port[0] ^ key->port[1];

    at = (at ^ at >> 8) & (FOREIGN_PLACES - 1);
    return bpf_map_lookup_elem(&foreigns, &at);
}

/* Nonzero: the connection was foreign when this CPU looked last, and needs no new look. */
static __always_inline int isStillForeign(const struct ebpfMonConnKey *key, __u32 serial)
{
    const struct foreign *f = findPlace(key);

    return f && f->key.addr[0] == key->addr[0] && f->key.addr[1] == key->addr[1] &&
           f->key.port[0] == key->port[0] && f->key.port[1] == key->port[1] && f->serial == serial &&
           nowSecs - f->since <= EBPFMON_FOREIGN_SECS;
}

static __always_inline void noteForeign(const struct ebpfMonConnKey *key, __u32 since, __u32 serial)
{
    struct foreign *f = findPlace(key);

    if (!f)
        return;
    f->key = *key;
    f->since = since;
    f->serial = serial;
}

static __always_inline int isPva(const __u8 *p)
{
    return p[0] == PVA_MAGIC && p[1] <= PVA_VERSION && !(p[2] & PVA_RESERVED) && p[3] <= PVA_LAST;
}

/* The head of a message, struct ca_hdr of caProto.h; all numbers are big-endian: m_cmmd, m_postsize, m_dataType,
 * m_count. If the size is 0xffff and the count 0, the real ones follow. */
static __always_inline enum looks isCa(const __u8 *p)
{
    __u32 command = (__u32)p[0] << 8 | p[1], size = (__u32)p[2] << 8 | p[3], count = (__u32)p[6] << 8 | p[7];

    if (command > CA_LAST || (size & 7 && !(size == 0xffff && count == 0)))
        return NO;
    if (CA_NO_PAYLOAD >> command & 1 && size)
        return NO;
    if (command != CA_VERSION)
        return CA;
    return count && count < 256 ? CA_HELLO : NO; /* the count is the minor version; a message of zeros is none */
}

static __always_inline enum looks lookAtHead(const __u8 *p)
{
    return isPva(p) ? PVA : isCa(p);
}

/* Looks at the first bytes of a packet's data: enum looks. "begins": these are the first data of their direction. A
 * global function: the verifier checks it once, and not what comes behind it once for each of its results. */
__attribute__((noinline)) int ebpfmon_look_at_data(struct __sk_buff *skb, __u32 at, __u32 size, __u32 begins)
{
    __u8 p[EBPFMON_SHORT] = {};

    if (size < sizeof(p)) {
        if (!begins)
            return PERHAPS;
        if (bpf_skb_load_bytes(skb, at, p, 1))
            return NO;
        return p[0] == 0 || p[0] == PVA_MAGIC ? PERHAPS : NO;
    }
    if (bpf_skb_load_bytes(skb, at, p, sizeof(p)))
        return NO;
    return lookAtHead(p);
}

/* Collects the first bytes of a direction, which may come in several segments. "offset": of this segment, less than
 * EBPFMON_SHORT; "size": not 0. Nonzero: all have come, and are in c->head. One copy of a variable size: a loop of
 * bytes cost the verifier 20,000 steps. */
static __always_inline int completeHead(struct __sk_buff *skb, struct ebpfMonConn *c, __u32 d, __u32 offset, __u32 at,
    __u32 size)
{
    __u64 n = (EBPFMON_SHORT - offset < size ? EBPFMON_SHORT - offset : size) - 1;
    __u32 place = (d & 1) * EBPFMON_SHORT + offset, have = c->headHave[d & 1];

    /* for the verifier, which has lost their bounds. Before 6.8 it does not learn from a comparison that n is not 0 */
    barrier_var(place);
    place &= 2 * EBPFMON_SHORT - 1;
    barrier_var(n);
    n &= EBPFMON_SHORT - 1;
    barrier_var(n);
    n++;
    if (!bpf_skb_load_bytes(skb, at, &c->head[place], n))
        have |= ((1u << n) - 1) << offset;
    c->headHave[d & 1] = have;
    return have == (1u << EBPFMON_SHORT) - 1;
}

static __always_inline void setForeign(struct ebpfMonConn *c, struct ebpfMonPacketCounts *count)
{
    c->state = EBPFMON_CONN_FOREIGN;
    c->since = nowSecs;
    if (!c->counted)
        count->foreign++;
    c->counted = 1;
}

/* Decides about data of a connection that is not known to be wanted or foreign. Nonzero: pass the packet to the user
 * part. */
static __always_inline int judgeData(struct __sk_buff *skb, const struct tcphdr *tcp, struct ebpfMonConn *c, __u32 d,
    __u32 at, __u32 size, struct ebpfMonPacketCounts *count)
{
    int fresh = c->state == EBPFMON_CONN_FRESH, known = isExpected(tcp->source) || isExpected(tcp->dest);
    __u32 first = d ? c->first[1] : c->first[0], offset = bpf_ntohl(tcp->seq) - first;
    /* A packet that has overtaken the first one can begin anywhere in a message. */
    int begins = fresh && (!(c->known >> d & 1) || !offset);
    enum looks looks = ebpfmon_look_at_data(skb, at, size, begins);

    if (fresh && c->known >> d & 1 && offset < EBPFMON_SHORT && (offset || size < EBPFMON_SHORT) &&
        completeHead(skb, c, d, offset, at, size)) {
        looks = lookAtHead(&c->head[(d & 1) * EBPFMON_SHORT]);
        begins = 1;
    }

    if (begins && d == c->client && looks == CA && !known)
        looks = NO; /* the first message of a CA client is its version */
    if (looks >= CA) {
        c->state = EBPFMON_CONN_WANTED;
        return 1;
    }
    if (begins && looks == NO && !known) {
        setForeign(c, count);
        return 0;
    }
    /* Segments may have one byte each: then it takes more of them to recognise a message. */
    c->tries += size < EBPFMON_SHORT ? 1 : EBPFMON_SHORT;
    if (c->tries >= EBPFMON_SHORT * (known ? EBPFMON_TRIES_KNOWN : EBPFMON_TRIES))
        setForeign(c, count);
    /* Segments can begin within a message. Where we expect CA or PVA, the user part may find a header later in such a
     * segment. */
    return known || looks == PERHAPS || (fresh && !begins);
}

/* Notes from SYN and SYN-ACK at which sequence number the data will begin. Nonzero: pass the packet to the user part,
 * because its port is expected. */
static __always_inline int noteHandshake(const struct tcphdr *tcp, struct ebpfMonConnKey *key, __u32 d)
{
    __u32 first = bpf_ntohl(tcp->seq) + 1;

    if (!tcp->ack) {
        struct ebpfMonConn new = { .state = EBPFMON_CONN_FRESH, .client = d, .known = 1u << d };

        new.first[0] = new.first[1] = first;
        bpf_map_update_elem(&conns, key, &new, BPF_ANY);
    } else {
        struct ebpfMonConn *c = bpf_map_lookup_elem(&conns, key);

        if (c && c->state == EBPFMON_CONN_FRESH) {
            if (d)
                c->first[1] = first;
            else
                c->first[0] = first;
            c->known |= 1u << d;
        }
    }
    __sync_fetch_and_add(&changes, 1); /* after the connection can be found */
    return isExpected(tcp->source) || isExpected(tcp->dest);
}

static __always_inline int isWantedTcp(struct __sk_buff *skb, __u32 ip, const struct headers *h,
    struct ebpfMonPacketCounts *count)
{
    const struct tcphdr *tcp = &h->tcp;
    /* 0: the packet is longer than the field can say (BIG TCP). Otherwise the field counts, because short frames are
     * padded. */
    __u32 total = h->ip.tot_len ? bpf_ntohs(h->ip.tot_len) : skb->len - ip;
    __u32 at = h->ip.ihl * 4u + tcp->doff * 4u, serial = changes, size, d;
    struct ebpfMonConnKey key;
    struct ebpfMonConn *c;
    int pass = 0;

    if (tcp->doff < 5 || at > total)
        return 0;
    size = total - at;
    if (!size && !tcp->syn && !tcp->fin && !tcp->rst)
        return 0;
    d = ebpfMonConnKeySet(&key, h->ip.saddr, tcp->source, h->ip.daddr, tcp->dest);
    if (tcp->syn)
        return noteHandshake(tcp, &key, d);
    if (!tcp->fin && !tcp->rst && isStillForeign(&key, serial))
        return 0;
    c = bpf_map_lookup_elem(&conns, &key);
    if (!c) {
        struct ebpfMonConn new = { .state = EBPFMON_CONN_MIDDLE };

        if (!size || tcp->rst)
            return 0;
        pass = judgeData(skb, tcp, &new, d, ip + at, size, count);
        bpf_map_update_elem(&conns, &key, &new, BPF_ANY);
        return pass;
    }
    if (c->state == EBPFMON_CONN_WANTED)
        return 1;
    if (c->state == EBPFMON_CONN_FOREIGN && nowSecs - c->since > EBPFMON_FOREIGN_SECS) {
        c->state = EBPFMON_CONN_MIDDLE;
        c->tries = 0;
    }
    if (c->state == EBPFMON_CONN_FOREIGN)
        noteForeign(&key, c->since, serial);
    else if (size)
        pass = judgeData(skb, tcp, c, d, ip + at, size, count);
    if (tcp->fin)
        c->ended |= 1u << d;
    /* Delete a connection that has ended at once, to make room. A wanted one stays, because late segments may
     * follow. */
    if ((tcp->rst || c->ended == 3) && c->state != EBPFMON_CONN_WANTED)
        bpf_map_delete_elem(&conns, &key);
    return pass;
}

/* Nonzero: a wanted datagram. pvAccess servers answer a search from a port of their own choice, to a port of the client
 * (pvAccessCPP, blockingUDPTransport.cpp: "search responses all always send from sendTransport"). We know these by
 * their magic byte. */
static __always_inline int isWantedUdp(struct __sk_buff *skb, __u32 ip, const struct headers *h)
{
    __u8 p[8];

    if (isExpected(h->tcp.source) || isExpected(h->tcp.dest))
        return 1;
    return !bpf_skb_load_bytes(skb, ip + h->ip.ihl * 4u + 8, p, sizeof(p)) && isPva(p);
}

/* Copies "n" bytes of the packet, at least its headers, into an entry with "room" bytes, which is a constant. Nonzero:
 * not possible. */
static __always_inline int copyPacket(struct __sk_buff *skb, __u32 ip, __u32 room, __u64 n, __u64 now)
{
    struct ebpfMonPacketHead *entry = bpf_ringbuf_reserve(&packets, sizeof(*entry) + room, 0);

    if (!entry)
        return -1;
    /* n is within both limits, but the verifier has lost that. Verifiers up to 6.12 know only the bound of a number
     * that was compared, so there is one comparison at a time. Verifiers before 6.8 learn nothing from a comparison
     * with 0. */
    barrier_var(n);
    if (n < UDP_MIN)
        n = UDP_MIN;
    barrier_var(n);
    if (n > room)
        n = room;
    barrier_var(n);
    if (bpf_skb_load_bytes(skb, ip, entry + 1, n)) {
        bpf_ringbuf_discard(entry, BPF_RB_NO_WAKEUP);
        return -1;
    }
    entry->ktime = now;
    entry->len = n;
    entry->wireLen = skb->len - ip;
    bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
    wakeReader(&packets, &packetsSleep);
    return 0;
}

/* Sends the packet to the user part. The size of an entry must be a constant, so there are some sizes, each of them
 * twice the one before. */
static __always_inline int sendPacket(struct __sk_buff *skb, __u32 ip)
{
    __u64 n = skb->len - ip < EBPFMON_PACKET_MAX ? skb->len - ip : EBPFMON_PACKET_MAX;
    __u64 now = bpf_ktime_get_ns();

#pragma unroll
    for (__u32 room = EBPFMON_PACKET_MIN; room < EBPFMON_PACKET_MAX; room *= 2)
        if (n <= room)
            return copyPacket(skb, ip, room, n, now);
    return copyPacket(skb, ip, EBPFMON_PACKET_MAX, n, now);
}

/* Reads the headers; the IP header begins at "ip". At a hook of a device ("ip" is not 0) a program may read the packet
 * itself, which is quicker. 0; or -1: the packet is too short. */
static __always_inline int readHeaders(struct __sk_buff *skb, __u32 ip, struct headers *h)
{
    if (ip) {
        const void *at = (const void *)(long)skb->data + ip, *end = (const void *)(long)skb->data_end;

        if (at + sizeof(*h) <= end) {
            *h = *(const struct headers *)at;
            return 0;
        }
    }
    return skb->len >= ip + sizeof(*h) ? bpf_skb_load_bytes(skb, ip, h, sizeof(*h)) :
                                         bpf_skb_load_bytes(skb, ip, h, UDP_MIN);
}

/* Looks at a packet. "ip": where its IP header begins. */
static __always_inline void seePacket(struct __sk_buff *skb, __u32 ip)
{
    struct ebpfMonPacketCounts *count;
    struct headers h = {};
    __u32 zero = 0, l4;
    int pass = 0;

    count = bpf_map_lookup_elem(&counts, &zero);
    if (!count)
        return;
    count->seen++;
    if (skb->protocol != bpf_htons(ETH_P_IP))
        return;
    if (readHeaders(skb, ip, &h))
        return;
    if (h.ip.version != 4 || h.ip.ihl < 5 || h.ip.frag_off & bpf_htons(FRAGMENT))
        return;
    l4 = ip + h.ip.ihl * 4u;
    if (h.ip.protocol == IPPROTO_TCP) {
        if (skb->len < l4 + sizeof(h.tcp) ||
            (l4 != ip + sizeof(h.ip) && bpf_skb_load_bytes(skb, l4, &h.tcp, sizeof(h.tcp))))
            return;
        pass = isWantedTcp(skb, ip, &h, count);
    } else if (h.ip.protocol == IPPROTO_UDP) {
        if (l4 != ip + sizeof(h.ip) && bpf_skb_load_bytes(skb, l4, &h.tcp, 8))
            return;
        pass = isWantedUdp(skb, ip, &h);
    }
    if (!pass)
        return;
    count->passed++;
    if (sendPacket(skb, ip))
        count->dropped++;
}

/* For packet sockets. Offset 0 is the IP header, because packet_rcv() of the kernel makes it so for SOCK_DGRAM.
 * (bpf_skb_load_bytes_relative() would also begin there, but it does not reach beyond the linear part, and most data of
 * large packets is beyond.) */
SEC("socket")
int ebpfmon_wire(struct __sk_buff *skb)
{
    /* on lo, a packet that goes out comes in again */
    if (skb->pkt_type != PACKET_OUTGOING || skb->ifindex != LOOPBACK_IFINDEX)
        seePacket(skb, 0);
    return 0; /* no packet goes through the socket: that would wake the reader for each one */
}

/* For packets that come in on lo. */
SEC("tc")
int ebpfmon_wire_lo(struct __sk_buff *skb)
{
    seePacket(skb, LINK_HEADER);
    return TC_ACT_UNSPEC; /* TCX_NEXT: other programs decide about the packet */
}
