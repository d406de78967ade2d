/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread: once a second, what is counted goes to the published values; IOCs and state as they change. */
#ifndef EBPFMON_PUBLISHER_H
#define EBPFMON_PUBLISHER_H

#include "probe/calibrate.h"
#include "search/search.h"
#include "watch/target.h"

typedef struct ebpfMonPublisher ebpfMonPublisher;

/* "targets", "search" and "costs" stay the caller's. The thread does not run yet. NULL without memory. */
ebpfMonPublisher *ebpfMonPublisherNew(ebpfMonTargets *targets, ebpfMonSearch *search, const ebpfMonCosts *costs);
/* After a successful stop. NULL does no harm. */
void ebpfMonPublisherFree(ebpfMonPublisher *publisher);

/* Starts the thread. 0, or -1 without memory. */
int ebpfMonPublisherStart(ebpfMonPublisher *publisher);
/* 0, or -1: it still runs, and uses the targets and the kernel part's tables. */
int ebpfMonPublisherStop(ebpfMonPublisher *publisher);

/* The IOCs or the state changed: they are published at once. Any thread, also before the start. */
void ebpfMonPublisherWake(ebpfMonPublisher *publisher);

/* A trouble of the monitor itself, not of one IOC: shown as state Degraded; empty: none. Any thread. */
void ebpfMonPublisherSetTrouble(ebpfMonPublisher *publisher, const char *text);

/* The counts of lost events begin at 0 again. Any thread. */
void ebpfMonPublisherResetLost(ebpfMonPublisher *publisher);

#endif
