/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "common/shares.h"
#include "host/procRead.h"
#include "host/procPayer.h"
#include "watch/packetPlaces.h"

unsigned ebpfMonPacketPlacesChoose(ebpfMonNetns *list, unsigned count, unsigned max, unsigned *left)
{
    ebpfMonShare *shares = count > max ? calloc(count, sizeof(*shares)) : NULL;
    unsigned kept = 1, out;

    *left = 0;
    if (count <= max)
        return 0;
    if (!shares) {
        *left = count - max;
        return count - max;
    }
    for (unsigned i = 1; i < count; i++) {
        uid_t user = ebpfMonProcNetnsPayer(list[i].pid);

        shares[i] = (ebpfMonShare){ .user = user, .isSystem = user < EBPFMON_SYSTEM_USERS,
                                    .order = ebpfMonProcStart(list[i].pid), .size = 1 };
    }
    out = ebpfMonSharesFit(shares + 1, count - 1, max - 1);
    for (unsigned i = 1; i < count; i++) {
        if (!shares[i].isOut)
            list[kept++] = list[i];
        *left += shares[i].isOut && shares[i].isSystem;
    }
    free(shares);
    return out;
}
