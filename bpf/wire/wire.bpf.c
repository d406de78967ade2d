// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * Selects the packets of a network namespace that may be Channel Access or pvAccess. The programs see every packet of
 * the namespace, so they must be quick for packets of others: a pure ACK costs one read of the headers, and data of a
 * connection that is known to be foreign one comparison more (isStillForeign). Two programs do the same: a filter for
 * packet sockets, and one for tcx (probe/packets.h).
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
#include "common/table.bpf.h"
#include "ebpfMonPacket.h"
#include "wire/wireLooks.bpf.h"
#include "wire/wirePorts.bpf.h"
#include "wire/wireSend.bpf.h"
#include "wire/wireTiming.bpf.h"
#include "wire/wireWaits.bpf.h"

#define LINK_HEADER      14     /* bytes before the IP header on lo: eth_type_trans() in loopback_xmit() */
#define UDP_HEADER       8
#define SHORTEST         8      /* bytes of the shortest message of both protocols: a header of pvAccess */
#define FRAGMENT         0x3fff /* bits of iphdr.frag_off: there are more fragments, or this is not the first */

struct headers {
    struct iphdr ip;
    struct tcphdr tcp; /* UDP has its ports at the same place as TCP */
};

struct headers6 {
    __u32  flow;
    __be16 length; /* of what follows this header */
    __u8   next, hops;
    __u32  src[4], dst[4];
    struct tcphdr tcp;
};

/* What the rest of the program needs of a packet of either kind. */
struct packet {
    struct ebpfMonConnKey key;
    struct tcphdr tcp; /* or UDP */
    __u32 d;           /* its direction */
    __u32 l4, end;     /* where its TCP header begins, and where the packet ends */
    __u32 isUdp;
};

TABLE(conns, LRU_HASH, EBPFMON_CONNS, struct ebpfMonConnKey, struct ebpfMonConn);

/*
 * Connections whose begin was seen, and that are not in "conns": what their SYN and SYN-ACK tell. A short connection
 * that is foreign is only here, because to make and to delete an element of "conns" costs more than all else that it
 * pays. A new connection takes the place of an old one, and nothing is locked. So two CPUs may write one place at a
 * time. A mixture of two connections has the key of neither, or a sequence number with which no data begin; and a
 * verdict counts only with the sequence number for which it was found.
 */
struct begun {
    __u32 serial;    /* a new number with each SYN, because a new connection can have the addresses and ports of an old
                      * one */
    struct ebpfMonConnKey key; /* zeros: the place is free */
    __u32 first[2];  /* as in struct ebpfMonConn; "known", "client" and "ended", too */
    __u32 foreign;   /* the connection is foreign if this is first[judged] */
    __u32 since;     /* the second in which that was found */
    __u8  known, client, ended;
    __u8  judged;    /* the direction whose data showed that */
};

#define BEGUN_PLACES_LOG 12

TABLE(begun, ARRAY, 1u << BEGUN_PLACES_LOG, __u32, struct begun);

/* Connections that were foreign when this CPU looked last: a comparison here costs less than a lookup in "conns". */
struct foreign {
    struct ebpfMonConnKey key;
    __u32 since;    /* of struct ebpfMonConn */
    __u32 serial;   /* of getSerial(), before that look */
    __u32 isInConns;
};

#define FOREIGN_PLACES_LOG 8

TABLE(foreigns, PERCPU_ARRAY, 1u << FOREIGN_PLACES_LOG, __u32, struct foreign);

/* Random, set by the user part: for the keys of IPv6 connections (ebpfMonConnKeySet6). */
volatile __u64 keySeed;

/* A new number whenever the user part has said what a connection is. */
volatile __u32 changes;

TABLE(counts, PERCPU_ARRAY, 1, __u32, struct ebpfMonPacketCounts);

/* The time in seconds, set by the user part: to read a clock for each foreign packet would cost more than everything
 * else. */
volatile __u32 nowSecs;

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The place of a connection in a table of 1 << "log" places. */
static __always_inline __u32 hashKey(const struct ebpfMonConnKey *key, __u32 log)
{
    __u32 ports = (__u32)key->port[0] << 16 | key->port[1];

    return ((ports ^ key->addr[0] ^ key->addr[1] << 7) * 0x9e3779b1u) >> (32 - log); /* 2^32 / golden ratio (Knuth) */
}

static __always_inline int isKey(const struct ebpfMonConnKey *a, const struct ebpfMonConnKey *b)
{
    return a->addr[0] == b->addr[0] && a->addr[1] == b->addr[1] && a->port[0] == b->port[0] && a->port[1] == b->port[1];
}

static __always_inline struct begun *findBegun(const struct ebpfMonConnKey *key)
{
    __u32 at = hashKey(key, BEGUN_PLACES_LOG);

    return bpf_map_lookup_elem(&begun, &at);
}

static __always_inline struct foreign *findForeign(const struct ebpfMonConnKey *key)
{
    __u32 at = hashKey(key, FOREIGN_PLACES_LOG);

    return bpf_map_lookup_elem(&foreigns, &at);
}

/* This number is another one after a SYN, or after a verdict of the user part. */
static __always_inline __u32 getSerial(const struct begun *b)
{
    return b->serial + changes;
}

/* Nonzero: the connection was foreign when this CPU looked last, and needs no new look. */
static __always_inline int isStillForeign(const struct foreign *f, const struct ebpfMonConnKey *key, __u32 serial)
{
    return isKey(&f->key, key) && f->serial == serial && nowSecs - f->since <= EBPFMON_FOREIGN_SECS;
}

static __always_inline void noteForeign(struct foreign *f, const struct ebpfMonConnKey *key, __u32 since, __u32 serial,
    int isInConns)
{
    f->key = *key;
    f->since = since;
    f->serial = serial;
    f->isInConns = isInConns;
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

/* What "conns" shall have of a connection of "begun". */
static __always_inline struct ebpfMonConn getFresh(const struct begun *b)
{
    return (struct ebpfMonConn){ .state = EBPFMON_CONN_FRESH, .first = { b->first[0], b->first[1] }, .known = b->known,
                                 .client = b->client, .ended = b->ended };
}

static __always_inline int isBegunForeign(const struct begun *b)
{
    return b->foreign == (b->judged ? b->first[1] : b->first[0]);
}

static __always_inline void emptyPlace(struct begun *b)
{
    b->key = (struct ebpfMonConnKey){};
}

/* Writes a new connection to its place. "first": the sequence number of its data in direction "d". */
static __always_inline void setBegun(struct begun *b, const struct ebpfMonConnKey *key, __u32 first, __u32 d)
{
    if (b->key.port[0] && !isKey(&b->key, key) && !isBegunForeign(b)) { /* the other one has had no data yet */
        struct ebpfMonConnKey other = b->key;
        struct ebpfMonConn c = getFresh(b);

        bpf_map_update_elem(&conns, &other, &c, BPF_NOEXIST);
    }
    if (bpf_map_lookup_elem(&conns, key)) /* of an old connection */
        bpf_map_delete_elem(&conns, key);
    b->key = *key;
    b->first[0] = b->first[1] = first;
    b->foreign = first - 1;
    b->known = 1u << d;
    b->client = b->judged = d;
    b->ended = 0;
}

/* Notes from SYN and SYN-ACK at which sequence number the data will begin. Nonzero: pass the packet to the user part,
 * because its port is expected. */
static __always_inline int noteHandshake(const struct tcphdr *tcp, const struct ebpfMonConnKey *key, struct begun *b,
    __u32 d)
{
    __u32 first = bpf_ntohl(tcp->seq) + 1;
    struct ebpfMonConn *c;

    if (!tcp->ack) {
        setBegun(b, key, first, d);
    } else if (isKey(&b->key, key)) {
        if (d)
            b->first[1] = first;
        else
            b->first[0] = first;
        b->known |= 1u << d;
    } else if ((c = bpf_map_lookup_elem(&conns, key)) && c->state == EBPFMON_CONN_FRESH) { /* it has lost its place */
        if (d)
            c->first[1] = first;
        else
            c->first[0] = first;
        c->known |= 1u << d;
    }
    __sync_fetch_and_add(&b->serial, 1); /* after the connection can be found */
    return isExpected(tcp->source) || isExpected(tcp->dest);
}

/* FIN or RST without data, of a connection that is not in "conns". A place that is still taken would put a dead
 * connection into "conns" when another one comes. */
static __always_inline void endBegun(const struct tcphdr *tcp, const struct ebpfMonConnKey *key, struct begun *b,
    __u32 d)
{
    if (!isKey(&b->key, key))
        return;
    b->ended |= 1u << d;
    if (tcp->rst || b->ended == 3)
        emptyPlace(b);
}

/* Looks at data of a connection that is not in "conns". Nonzero: it is foreign. Else it is in "conns" from now on. */
static __always_inline int isForeignFirst(struct __sk_buff *skb, const struct tcphdr *tcp,
    const struct ebpfMonConnKey *key, struct begun *b, struct foreign *f, __u32 serial, __u32 d, __u32 at, __u32 size,
    struct ebpfMonPacketCounts *count)
{
    struct ebpfMonConn new = { .state = EBPFMON_CONN_MIDDLE };
    __u32 seq = bpf_ntohl(tcp->seq);
    int isBegun = isKey(&b->key, key);

    if (isBegun && isBegunForeign(b)) {
        if (nowSecs - b->since <= EBPFMON_FOREIGN_SECS) {
            noteForeign(f, key, b->since, serial, 0);
            return 1;
        }
        new.counted = 1;
    } else if (isBegun) {
        new = getFresh(b);
        if (b->known >> d & 1 && seq == (d ? b->first[1] : b->first[0]) &&
            ebpfmon_look_at_data(skb, at, size, 1) == NO && !isExpected(tcp->source) && !isExpected(tcp->dest)) {
            count->foreign++;
            b->since = nowSecs;
            b->judged = d;
            b->foreign = seq;
            noteForeign(f, key, b->since, serial, 0);
            return 1;
        }
    }
    bpf_map_update_elem(&conns, key, &new, BPF_NOEXIST); /* another CPU may have done it */
    if (isBegun)
        emptyPlace(b);
    return 0;
}

/* Looks at a packet of a connection that is in "conns". Nonzero: pass it to the user part. */
static __always_inline int judgeNext(struct __sk_buff *skb, const struct tcphdr *tcp, const struct ebpfMonConnKey *key,
    struct ebpfMonConn *c, struct foreign *f, __u32 serial, __u32 d, __u32 at, __u32 size,
    struct ebpfMonPacketCounts *count)
{
    int pass = 0;

    if (c->state == EBPFMON_CONN_WANTED)
        return 1;
    if (c->state == EBPFMON_CONN_FOREIGN && nowSecs - c->since > EBPFMON_FOREIGN_SECS) {
        c->state = EBPFMON_CONN_MIDDLE;
        c->tries = 0;
    }
    if (c->state == EBPFMON_CONN_FOREIGN)
        noteForeign(f, key, c->since, serial, 1);
    else if (size)
        pass = judgeData(skb, tcp, c, d, at, size, count);
    if (tcp->fin)
        c->ended |= 1u << d;
    /* Delete a connection that has ended at once, to make room. A wanted one stays, because late segments may
     * follow. */
    if ((tcp->rst || c->ended == 3) && c->state != EBPFMON_CONN_WANTED)
        bpf_map_delete_elem(&conns, key);
    return pass;
}

/* Bytes from the IP header on. 0 in the field: the packet is longer than the field can say (BIG TCP). Otherwise the
 * field counts, because short frames are padded. */
static __always_inline __u32 getLength(const struct __sk_buff *skb, __u32 ip, const struct headers *h)
{
    return h->ip.tot_len ? bpf_ntohs(h->ip.tot_len) : skb->len - ip;
}

static __always_inline int isWantedTcp(struct __sk_buff *skb, const struct packet *p, struct ebpfMonPacketCounts *count)
{
    const struct ebpfMonConnKey *key = &p->key;
    const struct tcphdr *tcp = &p->tcp;
    __u32 at = p->l4 + tcp->doff * 4u, serial, size, d = p->d;
    struct ebpfMonConn *c;
    struct foreign *f;
    struct begun *b;

    if (tcp->doff < 5 || at > p->end)
        return 0;
    size = p->end - at;
    if (!size && !tcp->syn && !tcp->fin && !tcp->rst && !tcp->urg)
        return 0;
    b = findBegun(key);
    f = findForeign(key);
    if (!b || !f)
        return 0;
    if (tcp->syn)
        return noteHandshake(tcp, key, b, d);
    serial = getSerial(b);
    if (isStillForeign(f, key, serial) && (!f->isInConns || (!tcp->fin && !tcp->rst)))
        return 0;
    c = bpf_map_lookup_elem(&conns, key);
    if (tcp->urg) /* the user part follows this connection no more (ebpfMonCircuitGiveUp) */
        return c ? c->state != EBPFMON_CONN_FOREIGN : !isKey(&b->key, key) || !isBegunForeign(b);
    if (!c) {
        if (!size || tcp->rst) {
            endBegun(tcp, key, b, d);
            return 0;
        }
        if (isForeignFirst(skb, tcp, key, b, f, serial, d, at, size, count))
            return 0;
        c = bpf_map_lookup_elem(&conns, key);
    }
    return c ? judgeNext(skb, tcp, key, c, f, serial, d, at, size, count) : 0;
}

/* Nonzero: a wanted datagram. pvAccess servers answer a search from a port of their own choice, to a port of the client
 * (pvAccessCPP, blockingUDPTransport.cpp: "search responses all always send from sendTransport"). We know these by
 * their magic byte. A client of CA may search at a port at which nobody listens. */
static __always_inline int isWantedUdp(struct __sk_buff *skb, const struct packet *packet)
{
    __u32 at = packet->l4 + UDP_HEADER;
    __u8 p[EBPFMON_SHORT];

    if (isExpected(packet->tcp.source) || isExpected(packet->tcp.dest))
        return 1;
    return !bpf_skb_load_bytes(skb, at, p, sizeof(p)) && (isPva(p) || isCaSearch(skb, at, p));
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

/* 0: TCP or UDP over IPv4; -1: something else. */
static __always_inline int readIPv4(struct __sk_buff *skb, __u32 ip, struct packet *p)
{
    struct headers h = {};

    if (readHeaders(skb, ip, &h))
        return -1;
    if (h.ip.version != 4 || h.ip.ihl < 5 || h.ip.frag_off & bpf_htons(FRAGMENT))
        return -1;
    p->l4 = ip + h.ip.ihl * 4u;
    p->end = ip + getLength(skb, ip, &h);
    if (h.ip.protocol == IPPROTO_TCP) {
        if (skb->len < p->l4 + sizeof(h.tcp) ||
            (p->l4 != ip + sizeof(h.ip) && bpf_skb_load_bytes(skb, p->l4, &h.tcp, sizeof(h.tcp))))
            return -1;
    } else if (h.ip.protocol == IPPROTO_UDP) {
        /* a CA client that looks for its repeater sends nothing, each second (Base, udpiiu.cpp,
         * caRepeaterRegistrationMessage) */
        if (skb->len < p->l4 + UDP_HEADER + SHORTEST)
            return -1;
        if (p->l4 != ip + sizeof(h.ip) && bpf_skb_load_bytes(skb, p->l4, &h.tcp, 8))
            return -1;
        p->isUdp = 1;
    } else {
        return -1;
    }
    p->tcp = h.tcp;
    p->d = ebpfMonConnKeySet(&p->key, h.ip.saddr, h.tcp.source, h.ip.daddr, h.tcp.dest);
    return 0;
}

/* The same over IPv6, without extension headers: packets of CA and PVA have none. Their datagrams are longer than a TCP
 * header. */
static __always_inline int readIPv6(struct __sk_buff *skb, __u32 ip, struct packet *p)
{
    struct headers6 h = {};

    if (skb->len < ip + sizeof(h) || bpf_skb_load_bytes(skb, ip, &h, sizeof(h)) ||
        (h.next != IPPROTO_TCP && h.next != IPPROTO_UDP))
        return -1;
    p->isUdp = h.next == IPPROTO_UDP;
    p->l4 = ip + sizeof(h) - sizeof(h.tcp);
    p->end = h.length ? p->l4 + bpf_ntohs(h.length) : skb->len; /* 0: BIG TCP */
    p->tcp = h.tcp;
    p->d = ebpfMonConnKeySet6(&p->key, keySeed, h.src, h.tcp.source, h.dst, h.tcp.dest);
    return 0;
}

/* Looks at a packet. "ip": where its IP header begins. */
static __always_inline void seePacket(struct __sk_buff *skb, __u32 ip)
{
    struct ebpfMonPacketCounts *count;
    struct packet p = {};
    __u32 zero = 0;
    int pass;

    count = bpf_map_lookup_elem(&counts, &zero);
    if (!count)
        return;
    count->seen++;
    beginPacketTiming(count);
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        if (readIPv4(skb, ip, &p))
            return;
    } else if (skb->protocol != bpf_htons(ETH_P_IPV6) || readIPv6(skb, ip, &p)) {
        return;
    }
    pass = p.isUdp ? isWantedUdp(skb, &p) : isWantedTcp(skb, &p, count);
    if (!pass)
        return;
    count->passed++;
    if (sendPacket(skb, ip, p.isUdp || canTcpWait(skb, p.l4, p.end, &p.tcp),
        p.isUdp ? 0 : getBegin(skb, &p.tcp, count)))
        __sync_fetch_and_add(&count->dropped, 1); /* a real-time kernel may run another filter of this CPU in between */
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
