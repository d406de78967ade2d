/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides when a reader looks at its ring again. While events come one after the other, the reader looks by itself, and
 * nobody pays to wake it. It looks once soon after it was woken, if the event that woke it may be followed by another
 * one at once. If it finds one, it goes on, less and less often, until looks find nothing; then it sleeps until it is
 * woken. To look in vain costs the monitor as much as to be woken, so a single event is not worth more looks. But if it
 * is woken again soon after an event, it goes on as if a look had found this one: else who sends events at such a pace
 * would pay for each. Only the reader's thread uses this.
 */
#ifndef EBPFMON_PACE_H
#define EBPFMON_PACE_H

#include <stdint.h>

#define EBPFMON_PACE_FIRST_NS 125000ull  /* ns until the first look after an event came */
#define EBPFMON_PACE_LAST_NS  2000000ull /* ns; the time to the next look doubles up to this: the longest that an
                                          * event waits while others come */
#define EBPFMON_PACE_VAIN     4          /* looks without an event, one after the other, before the reader sleeps, if
                                          * events come fast */
#define EBPFMON_PACE_SOON_NS  2000000ull /* ns between two events that come fast, if the reader slept between them */

/* All 0: the reader sleeps, and there was no event. */
typedef struct {
    uint64_t wait;    /* ns before the next look; 0: it sleeps */
    unsigned vain;    /* looks since an event was found */
    int      isFast;  /* a look has found an event since it was woken, or it was woken soon after an event */
    uint64_t foundAt; /* ns, of the last event; 0: none */
} ebpfMonPace;

typedef enum {
    ebpfMonPaceNothing, /* the look has found no event */
    ebpfMonPaceWhole,   /* it has found one, and all that belongs to it */
    ebpfMonPaceMore,    /* it has found one, and another one may belong to it */
} ebpfMonPaceFound;

/* Call it after each look. "now": monotonic ns. Returns the ns until the next look; 0: sleep. */
uint64_t ebpfMonPaceNext(ebpfMonPace *pace, ebpfMonPaceFound found, uint64_t now);

#endif
