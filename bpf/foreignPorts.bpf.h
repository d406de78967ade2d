/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
/*
 * Servers whose last connection was foreign, neither CA nor PVA: by network namespace and port. Nobody asks who opened
 * a connection to one of them, and to keep that costs a short connection more than all else that it pays
 * (bpf/connection.bpf.c). The packet filter of a namespace writes them, but not the ports at which CA or PVA is
 * expected there. One that begins to listen is foreign no more, and the user part forgets all of them once a minute.
 *
 * Each place has a namespace and a port in one number, so what two CPUs write at a time is one of both. If two servers
 * have the same place, the one that was written last is known.
 */
#ifndef EBPFMON_FOREIGNPORTS_BPF_H
#define EBPFMON_FOREIGNPORTS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "ebpfMonPacket.h"

/* A table of its own, as eventsSleep (eventsSleep.bpf.h). */
extern volatile __u64 foreignPorts[EBPFMON_FOREIGN_PORTS];

#define DEFINE_FOREIGN_PORTS volatile __u64 foreignPorts[EBPFMON_FOREIGN_PORTS] SEC(".data.foreign")

static __always_inline int isPortForeign(__u32 netns, __be16 port)
{
    __u32 host = bpf_ntohs(port);

    return foreignPorts[ebpfMonForeignPortPlace(netns, host)] == ebpfMonForeignPort(netns, host);
}

static __always_inline void setPortForeign(__u32 netns, __be16 port)
{
    __u32 host = bpf_ntohs(port);

    foreignPorts[ebpfMonForeignPortPlace(netns, host)] = ebpfMonForeignPort(netns, host);
}

#endif
