/* SPDX-License-Identifier: BSD-3-Clause */
/* Which threads hang: those that hold a lock set, or are at one callback, for longer than ebpfMonHangLimit. */
#ifndef EBPFMON_HANGFINDER_H
#define EBPFMON_HANGFINDER_H

#include "ebpfMonTable.h"
#include "model/health.h"

typedef struct {
    uint32_t tid;
    struct ebpfMonThread seen;
} ebpfMonSeenThread;

/* "now": monotonic ns. Returns how many were found, EBPFMON_HEALTH_HANGS at most; "health" gets their stacks. Not under
 * the lock of the targets. */
unsigned ebpfMonHangsFind(const ebpfMonSeenThread *threads, unsigned count, uint64_t now, ebpfMonHang *found,
                          ebpfMonHealth *health);

#endif
