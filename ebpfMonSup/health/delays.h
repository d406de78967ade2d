/* SPDX-License-Identifier: BSD-3-Clause */
/* How long things waited in an IOC during the last seconds, from the tables of the kernel part. No state of its own. */
#ifndef EBPFMON_DELAYS_H
#define EBPFMON_DELAYS_H

#include "ebpfMonTable.h"
#include "model/healthValues.h"

/* Sets the waits of callbacks and of scanOnce. "now": monotonic ns. */
void ebpfMonDelaysSetQueues(const struct ebpfMonQueues *queues, uint64_t now, ebpfMonIocHealth *row);

/* If this thread held a lock set longer than row->hold: sets that, and *root, the record whose chain it was
 * (address). */
void ebpfMonDelaysAddHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root);

/* Raises the highest values of all IOCs to those of this one. */
void ebpfMonDelaysAddToHighest(const ebpfMonIocHealth *row, ebpfMonHealth *health);

#endif
