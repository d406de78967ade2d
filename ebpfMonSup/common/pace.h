/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when a reader looks at its ring again. While events come one after the other, nobody pays for waking the reader: it
 * looks by itself. It looks soon at first, because an event is often followed by another one at once, then less and less
 * often. After some looks that found nothing it sleeps until it is woken. Only the reader's thread uses this.
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
