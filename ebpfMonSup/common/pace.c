/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pace.h"

uint64_t ebpfMonPaceNext(ebpfMonPace *pace, int found)
{
    int slept = !pace->wait;

    pace->vain = found ? 0 : pace->vain + 1;
    pace->hasMore |= found && !slept;
    if (pace->vain == (pace->hasMore ? EBPFMON_PACE_VAIN : 1)) {
        *pace = (ebpfMonPace){ 0 };
        return 0;
    }
    pace->wait = slept ? EBPFMON_PACE_FIRST_NS : 2 * pace->wait;
    if (pace->wait > EBPFMON_PACE_LAST_NS)
        pace->wait = EBPFMON_PACE_LAST_NS;
    return pace->wait;
}
