// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How cold a CPU is when it traps. A trap goes through some kilobytes of the kernel's code and data, and then of ours.
 * If the CPU did something else meanwhile, these are not in its caches, and the trap costs twenty times as much (0.7 µs
 * become 15). The user part measures how much that is on this machine (probe/calibrate.c); here we count how often it
 * happens, and in part: a CPU gets cold bit by bit.
 */
#include "probe.bpf.h"

#define PAUSE_LEAST 500000ull     /* ns; the caches keep a trap for so long */
#define PAUSE_MOST  1000000000ull /* ns; a CPU does not get colder than that */

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} lastTrap SEC(".maps"); /* when this CPU trapped last; ns */

/* A global function, so that the verifier does not check what follows once for each of its branches. */
__attribute__((noinline)) int ebpfmon_note_pause(__u64 now)
{
    __u32 zero = 0;
    __u64 *last = bpf_map_lookup_elem(&lastTrap, &zero), pause;
    struct caller c;

    if (!last)
        return 0;
    pause = now - *last;
    *last = now;
    if (pause < PAUSE_LEAST || !findCaller(&c))
        return 0;
    if (pause > PAUSE_MOST)
        pause = PAUSE_MOST;
    countHits(&c, EBPFMON_HIT_COLD, EBPFMON_COLD_WHOLE * pause / (pause + EBPFMON_COLD_HALF_NS));
    return 0;
}
