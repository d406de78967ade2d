/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "record/shownPuts.h"

/* Returns how many rows of "now" stand before those that were shown; "count", if the others are not as they were. */
static unsigned findNew(const ebpfMonShownPuts *shown, const uint64_t *now, unsigned count)
{
    unsigned n = 0;

    while (n < count && (!shown->count || now[n] != shown->serial[0]))
        n++;
    if (count - n > shown->count || memcmp(now + n, shown->serial, (count - n) * sizeof(*now)) != 0)
        return count;
    return n;
}

unsigned ebpfMonShownPutsUpdate(ebpfMonShownPuts *shown, const ebpfMonPublished *published, const ebpfMonPv *pv,
                                unsigned max)
{
    uint64_t now[EBPFMON_PUTS_MAX];
    const ebpfMonPut *put;
    unsigned count = 0, n;

    while (count < max && count < EBPFMON_PUTS_MAX && (put = pv->row(published, count)) != NULL)
        now[count++] = put->serial;
    n = findNew(shown, now, count);
    memcpy(shown->serial, now, count * sizeof(*now));
    shown->count = count;
    return n;
}
