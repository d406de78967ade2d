/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/* The ports at which Channel Access or pvAccess is expected. */
#ifndef EBPFMON_WIREPORTS_BPF_H
#define EBPFMON_WIREPORTS_BPF_H

#include <bpf/bpf_endian.h>
#include "common/table.bpf.h"
#include "ebpfMonPacket.h"

/* A bit for each port, in host byte order. */
TABLE(ports, ARRAY, EBPFMON_PORT_WORDS, __u32, __u64);

static __always_inline int isExpected(__be16 port)
{
    __u32 host = bpf_ntohs(port), word = host / 64;
    __u64 *bits = bpf_map_lookup_elem(&ports, &word);

    return bits && (*bits >> (host & 63) & 1);
}

#endif
