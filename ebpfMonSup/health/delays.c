/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "health/delays.h"

/* The longest time (ms) of this window and the one before; *who: its record. The kernel part begins a new window
 * only when something happens, so the entry may be of an old window. */
static double findLongest(const struct ebpfMonRecent *r, uint64_t now, uint64_t *who)
{
    uint64_t window = now >> EBPFMON_WINDOW_BITS, max = 0;

    *who = 0;
    if (r->window == window || r->window + 1 == window) {
        max = r->max;
        *who = r->who;
    }
    if (r->window == window && r->maxBefore > max) {
        max = r->maxBefore;
        *who = r->whoBefore;
    }
    return (double)max / 1e6;
}

void ebpfMonDelaysSetQueues(const struct ebpfMonQueues *queues, uint64_t now, ebpfMonIocHealth *row)
{
    uint64_t who;

    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        row->callback[i] = findLongest(&queues->q[i].wait, now, &who);
    row->once = findLongest(&queues->q[EBPFMON_QUEUE_ONCE].wait, now, &who);
}

void ebpfMonDelaysAddHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root)
{
    uint64_t who;
    double held = findLongest(&seen->hold, now, &who);

    if (held > row->hold) {
        row->hold = held;
        *root = who;
    }
}

static void raiseMaximum(double *highest, double value)
{
    if (isnan(*highest) || value > *highest) /* NaN: none yet */
        *highest = value;
}

void ebpfMonDelaysAddToHighest(const ebpfMonIocHealth *row, ebpfMonHealth *health)
{
    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        raiseMaximum(&health->callbackMax, row->callback[i]);
    raiseMaximum(&health->onceMax, row->once);
    raiseMaximum(&health->holdMax, row->hold);
    raiseMaximum(&health->casMax, row->cas);
}
