/* SPDX-License-Identifier: BSD-3-Clause */
/* How long things waited in an IOC a short while ago, from the tables of the kernel half. */
#ifndef EBPFMON_DELAYS_H
#define EBPFMON_DELAYS_H

#include "ebpfMonTable.h"
#include "model/health.h"

/* Callbacks and scanOnce. */
void ebpfMonDelaysQueues(uint32_t tgid, uint64_t now, ebpfMonIocHealth *row);

/* Takes one thread in: the longest that it held a lock set, and *root, whose chain it was. */
void ebpfMonDelaysHold(const struct ebpfMonThread *seen, uint64_t now, ebpfMonIocHealth *row, uint64_t *root);

/* The highest of all into the scalars. */
void ebpfMonDelaysMost(const ebpfMonIocHealth *row, ebpfMonHealth *h);

#endif
