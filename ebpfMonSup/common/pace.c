/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pace.h"

uint64_t ebpfMonPaceNext(ebpfMonPace *pace, int found, uint64_t now)
{
    int slept = !pace->wait;

    if (found) {
        pace->isFast |= !slept || (pace->foundAt && now - pace->foundAt < EBPFMON_PACE_SOON_NS);
        pace->foundAt = now;
    }
    pace->vain = found ? 0 : pace->vain + 1;
    if (pace->vain == (pace->isFast ? EBPFMON_PACE_VAIN : 1)) {
        *pace = (ebpfMonPace){ .foundAt = pace->foundAt };
        return 0;
    }
    pace->wait = slept ? EBPFMON_PACE_FIRST_NS : 2 * pace->wait;
    if (pace->wait > EBPFMON_PACE_LAST_NS)
        pace->wait = EBPFMON_PACE_LAST_NS;
    return pace->wait;
}
