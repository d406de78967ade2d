/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pace.h"

/* Nonzero: the reader sleeps until it is woken. */
static int isOver(const ebpfMonPace *pace, ebpfMonPaceFound found, int slept)
{
    if (pace->isFast)
        return pace->vain == EBPFMON_PACE_VAIN;
    return pace->vain == 1 || (slept && found == ebpfMonPaceWhole);
}

uint64_t ebpfMonPaceNext(ebpfMonPace *pace, ebpfMonPaceFound found, uint64_t now)
{
    int slept = !pace->wait;

    if (found) {
        pace->isFast |= !slept || (pace->foundAt && now - pace->foundAt < EBPFMON_PACE_SOON_NS);
        pace->foundAt = now;
    }
    pace->vain = found ? 0 : pace->vain + 1;
    if (isOver(pace, found, slept)) {
        *pace = (ebpfMonPace){ .foundAt = pace->foundAt };
        return 0;
    }
    pace->wait = slept ? EBPFMON_PACE_FIRST_NS : 2 * pace->wait;
    if (pace->wait > EBPFMON_PACE_LAST_NS)
        pace->wait = EBPFMON_PACE_LAST_NS;
    return pace->wait;
}
