/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/clock.h"
#include "put/joinCovered.h"

#define LATE_NS (60 * EBPFMON_SECOND_NS) /* later than any event is read; a put waits no longer for the links of its
                                          * IOC */

static int isListed(const uint32_t *netns, unsigned count, uint32_t which)
{
    for (unsigned i = 0; i < count; i++)
        if (netns[i] == which)
            return 1;
    return 0;
}

/* Forgets the one that was left longest ago: somebody may make and end many. */
static void forgetOldest(ebpfMonJoinCovered *covered)
{
    unsigned oldest = covered->count;

    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].leftAt &&
            (oldest == covered->count || covered->space[i].leftAt < covered->space[oldest].leftAt))
            oldest = i;
    if (oldest < covered->count)
        covered->space[oldest] = covered->space[--covered->count];
}

static void addSpace(ebpfMonJoinCovered *covered, uint32_t netns)
{
    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].netns == netns) {
            covered->space[i].leftAt = 0;
            return;
        }
    if (covered->count == EBPFMON_JOIN_COVERED_MAX)
        forgetOldest(covered);
    if (covered->count == EBPFMON_JOIN_COVERED_MAX)
        return;
    covered->space[covered->count].netns = netns;
    covered->space[covered->count++].leftAt = 0;
}

void ebpfMonJoinCoveredSet(ebpfMonJoinCovered *covered, const uint32_t *netns, unsigned count, uint64_t now)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < covered->count; i++) {
        if (!covered->space[i].leftAt && !isListed(netns, count, covered->space[i].netns))
            covered->space[i].leftAt = now;
        if (!covered->space[i].leftAt || now - covered->space[i].leftAt < LATE_NS)
            covered->space[kept++] = covered->space[i];
    }
    covered->count = kept;
    for (unsigned i = 0; i < count; i++)
        addSpace(covered, netns[i]);
}

int ebpfMonJoinCoveredHas(const ebpfMonJoinCovered *covered, const struct ebpfMonPeer *peer)
{
    for (unsigned i = 0; i < covered->count; i++)
        if (covered->space[i].netns == peer->netns)
            return 1;
    return 0;
}
