/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "ioc/stretch.h"

ebpfMonStretches *ebpfMonStretchesMake(uint32_t n, const uint32_t *order, const uint32_t *start,
                                       const uint32_t *to, const uint32_t *fwd, const uint8_t *skip,
                                       unsigned max)
{
    ebpfMonStretches *s = calloc(1, sizeof(*s));
    uint32_t *causes = calloc((size_t)n + 1, sizeof(*causes)); /* how many links process a record */

    if (!s || !causes)
        goto fail;
    s->n = n;
    s->order = malloc(((size_t)n + 1) * sizeof(*s->order));
    s->place = malloc(((size_t)n + 1) * sizeof(*s->place));
    s->ahead = calloc((size_t)n + 1, 1);
    if (!s->order || !s->place || !s->ahead)
        goto fail;
    for (uint32_t p = 0; p < n; p++) {
        s->order[p] = order[p];
        s->place[order[p]] = p;
    }
    for (uint32_t e = 0; e < start[n]; e++)
        causes[to[e]]++;
    /* from the end, so that what comes after is known */
    for (uint32_t p = n; p-- > 0;) {
        uint32_t v = order[p], w = fwd[v];

        if (w == EBPFMON_NO_RECORD || p + 1 >= n || order[p + 1] != w || start[v + 1] - start[v] != 1 ||
            causes[w] != 1 || skip[v] || skip[w] || s->ahead[w] >= max)
            continue;
        s->ahead[v] = (uint8_t)(s->ahead[w] + 1);
    }
    free(causes);
    return s;
fail:
    free(causes);
    ebpfMonStretchesFree(s);
    return NULL;
}

void ebpfMonStretchesFree(ebpfMonStretches *s)
{
    if (!s)
        return;
    free(s->order);
    free(s->place);
    free(s->ahead);
    free(s);
}

uint32_t ebpfMonStretchBefore(const ebpfMonStretches *s, uint32_t record)
{
    uint32_t p = s->place[record], before;

    if (p == 0)
        return EBPFMON_NO_RECORD;
    before = s->order[p - 1];
    return s->ahead[before] && s->ahead[before] == s->ahead[record] + 1 ? before : EBPFMON_NO_RECORD;
}
