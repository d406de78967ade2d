/* SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only) */
#ifndef EBPFMON_EVENTSSLEEP_BPF_H
#define EBPFMON_EVENTSSLEEP_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Nonzero: nobody reads the ring of events until a program wakes its reader (wake.bpf.h). The user part sets it. A
 * packet that wakes the packet reader clears it, because that wakes the reader of events then (common/ringReader.h). It
 * is a table of its own: packet filters are objects of their own, and the user part connects this table by name before
 * it loads them. */
extern volatile __u32 eventsSleep;

#define DEFINE_EVENTS_SLEEP volatile __u32 eventsSleep SEC(".data.sleeps")

#endif
