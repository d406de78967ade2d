/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* Whether the first bytes of a packet's data look like Channel Access or pvAccess. */
#ifndef EBPFMON_WIRELOOKS_BPF_H
#define EBPFMON_WIRELOOKS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "ebpfMonPacket.h"

#define CA_LAST          27     /* caProto.h: CA_PROTO_SERVER_DISCONN */
#define CA_VERSION       0
#define CA_SEARCH        6
#define CA_HEADER        16     /* bytes */
#define PVA_MAGIC        0xca
#define PVA_VERSION      4      /* the newest that we know: the protocol revision of the specification */
#define PVA_RESERVED     0x0e   /* bits of the flags that must be 0 */
#define PVA_LAST         23

/* Commands of caProto.h without a payload (VERSION, EVENTS_OFF, EVENTS_ON, READ_SYNC, CLEAR_CHANNEL, ACCESS_RIGHTS,
 * ECHO, CREATE_CH_FAIL, SERVER_DISCONN). */
#define CA_NO_PAYLOAD \
    (1u << 0 | 1u << 8 | 1u << 9 | 1u << 10 | 1u << 12 | 1u << 22 | 1u << 23 | 1u << 26 | 1u << 27)

/* What the first bytes of a packet's data look like. */
enum looks { NO, PERHAPS /* too short to tell */, CA, CA_HELLO, PVA };

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

/* Nonzero: a datagram that searches by Channel Access, or answers: it begins with the version ("p"), and the search
 * follows (udpiiu.cpp, pushVersionMsg; rsrv, cas_send_dg_msg). */
static __always_inline int isCaSearch(struct __sk_buff *skb, __u32 at, const __u8 *p)
{
    __u8 next[EBPFMON_SHORT];

    return isCa(p) == CA_HELLO && !bpf_skb_load_bytes(skb, at + CA_HEADER, next, sizeof(next)) && isCa(next) == CA &&
           next[1] == CA_SEARCH;
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

#endif
