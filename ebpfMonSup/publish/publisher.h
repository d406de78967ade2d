/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread: once a second, the counts and latencies of the kernel's tables to the published; IOCs
 * and state as they change. */
#ifndef EBPFMON_PUBLISHER_H
#define EBPFMON_PUBLISHER_H

#include "model/published.h"
#include "search/search.h"

void ebpfMonPublisherStart(ebpfMonSearch *search);
/* The IOCs or the state changed: they are published at once. Any thread. */
void ebpfMonPublisherWake(void);
int ebpfMonPublisherStop(void); /* 0, or -1: it still runs */

/* What runs badly besides the targets: shown as state Degraded. Empty: nothing. */
void ebpfMonPublisherSetTrouble(const char *text);
void ebpfMonPublisherSetState(ebpfMonState state, const char *text);
void ebpfMonPublisherResetLost(void);

#endif
