/* SPDX-License-Identifier: BSD-3-Clause */
/* How long callbacks, scanOnce and lock sets took in an IOC during the last 8.6 to 17.2 s (EBPFMON_WINDOW_BITS),
 * from the tables of the kernel part. No state. Any thread; the structs are the caller's. */
#ifndef EBPFMON_DELAYS_H
#define EBPFMON_DELAYS_H

#include "ebpfMonTable.h"
#include "model/healthValues.h"

/* Sets row->callback and row->once (ms). "now": monotonic ns. */
void ebpfMonDelaysSetQueues(const struct ebpfMonQueues *queues, uint64_t now, ebpfMonIocHealth *row);

/* If this thread held a lock set longer than row->hold (ms): sets row->hold, and *root to the address of the root of
 * that chain. */
void ebpfMonDelaysAddHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root);

/* Raises the highest values of all IOCs (health->callbackMax …) to the values of this IOC where these are higher. */
void ebpfMonDelaysAddToHighest(const ebpfMonIocHealth *row, ebpfMonHealth *health);

#endif
