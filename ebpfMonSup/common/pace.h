/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when a reader looks at its ring again. While events come one after the other, the reader looks by itself, and
 * nobody pays to wake it. It looks soon at first, because an event is often followed by another one at once; then less
 * and less often. After some looks that found nothing, it sleeps until it is woken. Only the reader's thread uses this.
 */
#ifndef EBPFMON_PACE_H
#define EBPFMON_PACE_H

#include <stdint.h>

#define EBPFMON_PACE_FIRST_NS 250000ull  /* ns until the first look after an event came */
#define EBPFMON_PACE_LAST_NS  2000000ull /* ns; the time to the next look doubles up to this: the longest that an
                                          * event waits while others come */
#define EBPFMON_PACE_VAIN     4          /* looks without an event, one after the other, before the reader sleeps */

/* All 0: the reader sleeps. */
typedef struct {
    uint64_t wait; /* ns before the next look; 0: it sleeps */
    unsigned vain; /* looks since an event was found */
} ebpfMonPace;

/* Call it after each look. "found": nonzero if there was an event. Returns the ns until the next look; 0: sleep. */
uint64_t ebpfMonPaceNext(ebpfMonPace *pace, int found);

#endif
