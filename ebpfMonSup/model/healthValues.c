/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>

#include "model/healthValues.h"

const char *ebpfMonHealthEvent(const ebpfMonHealth *h, unsigned i)
{
    if (i >= h->events || i >= EBPFMON_HEALTH_EVENTS)
        return NULL;
    return h->event[(h->eventHead + EBPFMON_HEALTH_EVENTS - i) % EBPFMON_HEALTH_EVENTS];
}

int ebpfMonHealthHasTrouble(const ebpfMonHealth *h)
{
    return h->gone || h->hangs || h->still;
}
