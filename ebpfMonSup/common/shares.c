/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/shares.h"

static uint64_t sumOf(const ebpfMonShare *shares, unsigned count, uint64_t user)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < count; i++)
        if (shares[i].user == user && !shares[i].isOut)
            sum += shares[i].size;
    return sum;
}

/* Nonzero: "a" is given up before "b". "has": what their users have. */
static int isFirstToGo(const ebpfMonShare *a, uint64_t aHas, const ebpfMonShare *b, uint64_t bHas)
{
    if (!a->isSystem != !b->isSystem)
        return !a->isSystem;
    return aHas != bHas ? aHas > bHas : a->order > b->order;
}

/* Gives up one, and takes it from what its user has. Returns its size; 0: there is none any more. */
static uint64_t giveUpOne(ebpfMonShare *shares, unsigned count, uint64_t *has)
{
    unsigned out = count;

    for (unsigned i = 0; i < count; i++)
        if (!shares[i].isOut && (out == count || isFirstToGo(&shares[i], has[i], &shares[out], has[out])))
            out = i;
    if (out == count)
        return 0;
    shares[out].isOut = 1;
    for (unsigned i = 0; i < count; i++)
        if (shares[i].user == shares[out].user)
            has[i] -= shares[out].size;
    return shares[out].size;
}

unsigned ebpfMonSharesFit(ebpfMonShare *shares, unsigned count, uint64_t room)
{
    uint64_t *has, all = 0, size;
    unsigned out = 0;

    for (unsigned i = 0; i < count; i++) {
        shares[i].isOut = 0;
        all += shares[i].size;
    }
    if (all <= room)
        return 0;
    has = calloc(count, sizeof(*has));
    for (unsigned i = 0; has && i < count; i++)
        has[i] = sumOf(shares, count, shares[i].user);
    while (has && all > room && (size = giveUpOne(shares, count, has)) > 0) {
        all -= size;
        out++;
    }
    if (!has && count) { /* without memory the last one gets nothing */
        shares[count - 1].isOut = 1;
        out = 1;
    }
    free(has);
    return out;
}
