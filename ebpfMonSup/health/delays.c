/* SPDX-License-Identifier: BSD-3-Clause */
#include "health/delays.h"
#include "probe/loader.h"

/* ms; the kernel half turns the window only when something comes. */
static double longest(const struct ebpfMonRecent *r, uint64_t now, uint64_t *who)
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

void ebpfMonDelaysQueues(uint32_t tgid, uint64_t now, ebpfMonIocHealth *row)
{
    struct ebpfMonQueues q;
    uint64_t who;

    if (ebpfMonKernelGetQueues(tgid, &q))
        return;
    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        row->callback[i] = longest(&q.q[i].wait, now, &who);
    row->once = longest(&q.q[EBPFMON_QUEUE_ONCE].wait, now, &who);
}

void ebpfMonDelaysHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root)
{
    uint64_t who;
    double held = longest(&seen->hold, now, &who);

    if (held > row->hold) {
        row->hold = held;
        *root = who;
    }
}

static void most(double *max, double value)
{
    if (value > *max)
        *max = value;
}

void ebpfMonDelaysMost(const ebpfMonIocHealth *row, ebpfMonHealth *h)
{
    for (int i = 0; i < EBPFMON_QUEUE_ONCE; i++)
        most(&h->callbackMax, row->callback[i]);
    most(&h->onceMax, row->once);
    most(&h->holdMax, row->hold);
    most(&h->casMax, row->cas);
}
