// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/* Defines the tables. maps.bpf.h tells what they are for. */
#define MAP
#include "common/eventsSleep.bpf.h"
#include "common/maps.bpf.h"

DEFINE_EVENTS_SLEEP;

/* Each in a cache line of its own: every probe reads "silent", and the others are written often. */
volatile __u32 silent __attribute__((aligned(64)));
volatile __u32 rootsNeeded __attribute__((aligned(64)));
volatile __u32 rootsUsed __attribute__((aligned(64)));
volatile __u32 hasAsyncs __attribute__((aligned(64)));
volatile __u32 hasParts __attribute__((aligned(64)));
struct ebpfMonShare shares[EBPFMON_SHARES] __attribute__((aligned(64)));
volatile __u32 endedOwnersCount[EBPFMON_ENDED_SHARES] __attribute__((aligned(64)));
volatile __u64 targetBits[EBPFMON_TARGET_WORDS] __attribute__((aligned(64)));
volatile __u32 probeNumbers[EBPFMON_PROBES] __attribute__((aligned(64)));
volatile __u64 stretchPuts[EBPFMON_SHARES] __attribute__((aligned(64)));

char LICENSE[] SEC("license") = "Dual BSD/GPL";
