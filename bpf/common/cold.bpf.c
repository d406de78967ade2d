// SPDX-License-Identifier: (BSD-3-Clause OR GPL-2.0-only)
/*
 * How cold a CPU is when it traps. A trap goes through some kilobytes of the kernel's code and data, and then of ours.
 * If the CPU did something else meanwhile, these are not in its caches, and the trap costs twenty times as much (0.7 µs
 * become 15). The user part measures how much that is on this machine (probe/calibrate.c); here we count how often it
 * happens, and in part: a CPU gets cold bit by bit. The traps that follow the first one are at other places, and run
 * other programs, which are cold, too; what all traps go through is warm then.
 */
#include "common/probe.bpf.h"

#define PAUSE_LEAST 500000ull     /* ns; the caches keep a trap for so long */
#define PAUSE_MOST  1000000000ull /* ns; a CPU does not get colder than that */
#define NEXT_TRAPS  3             /* so many traps after the first one … */
#define NEXT_PART   3             /* … take a third of it, if the pause was long */

struct cold {
    __u64 last; /* when this CPU trapped last; ns */
    __u32 part; /* what each of the next traps counts */
    __u32 left; /* so many next traps there are */
};

TABLE(colds, PERCPU_ARRAY, 1, __u32, struct cold);

/* A global function, so that the verifier does not check what follows once for each of its branches. */
__attribute__((noinline)) int ebpfmon_note_pause(__u64 now)
{
    __u32 zero = 0, part, left;
    struct cold *cold = bpf_map_lookup_elem(&colds, &zero);
    struct caller c;
    __u64 pause;

    if (!cold)
        return 0;
    /* Another thread of this CPU may preempt this program anywhere, and run it. Then "last" may be later than "now",
     * and "left" another number at each look. */
    pause = now > cold->last ? now - cold->last : 0;
    cold->last = now;
    left = *(volatile __u32 *)&cold->left;
    if (pause < PAUSE_LEAST && !left)
        return 0;
    if (pause < PAUSE_LEAST) {
        cold->left = left - 1;
        part = cold->part;
    } else {
        if (pause > PAUSE_MOST)
            pause = PAUSE_MOST;
        part = EBPFMON_COLD_WHOLE * pause / (pause + EBPFMON_COLD_HALF_NS);
        cold->part = part * part / EBPFMON_COLD_WHOLE / NEXT_PART;
        cold->left = NEXT_TRAPS;
    }
    if (findCaller(&c))
        countHits(&c, EBPFMON_HIT_COLD, part);
    return 0;
}
