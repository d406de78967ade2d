/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When a reader looks again. Where events come one after the other, nobody pays for waking it: it looks by itself, soon
 * at first, because what follows an event follows at once, then less and less often. Once nothing has come for some looks
 * it sleeps until it is woken. No thread owns it but its reader's.
 */
#ifndef EBPFMON_PACE_H
#define EBPFMON_PACE_H

#include <stdint.h>

#define EBPFMON_PACE_FIRST_NS 250000ull  /* until the first look after something came */
#define EBPFMON_PACE_LAST_NS  2000000ull /* doubled up to this: the most that an event waits while others come */
#define EBPFMON_PACE_VAIN     4          /* looks that find nothing, one after the other, before it sleeps */

/* All 0: it sleeps. */
typedef struct {
    uint64_t wait; /* ns, before the look that comes next; 0: it sleeps */
    unsigned vain; /* looks since something was found */
} ebpfMonPace;

/* After each look; "found": nonzero if there was something. Returns the ns until the next look; 0: sleep. */
uint64_t ebpfMonPaceNext(ebpfMonPace *pace, int found);

#endif
