/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread. Once a second it copies all counts to the published values. IOCs and STATE are published as
 * soon as they change. In a silence (probe/kernelEvents.h), when also all rates are 0, it looks every
 * EBPFMON_SILENT_NS. */
#ifndef EBPFMON_PUBLISHER_H
#define EBPFMON_PUBLISHER_H

#include "model/audits.h"
#include "model/losses.h"
#include "probe/calibrate.h"
#include "search/search.h"
#include "watch/target.h"

typedef struct ebpfMonPublisher ebpfMonPublisher;

/* All arguments stay the caller's. The thread does not run yet. NULL without memory. */
ebpfMonPublisher *ebpfMonPublisherNew(ebpfMonTargets *targets, ebpfMonSearch *search, ebpfMonLosses *losses,
                                      ebpfMonAudits *audits, const ebpfMonCosts *costs);
/* Only after Stop returned 0, or without a start. NULL does no harm. */
void ebpfMonPublisherFree(ebpfMonPublisher *publisher);

/* Starts the thread. 0, or -1 without memory. */
int ebpfMonPublisherStart(ebpfMonPublisher *publisher);
/* Stops the thread. 0, or -1: it still runs, and uses the targets and the tables of the kernel part. */
int ebpfMonPublisherStop(ebpfMonPublisher *publisher);

/* Publishes the IOCs and STATE at once, because they changed. Any thread, also before the start. */
void ebpfMonPublisherWake(ebpfMonPublisher *publisher);

/* A silence ended at this time (monotonic ns): values are published each second again. Any thread, also before the
 * start. */
void ebpfMonPublisherEndSilence(ebpfMonPublisher *publisher, uint64_t at);

/* Shows a trouble of the monitor itself, not of one IOC: STATE becomes Degraded, with this text. Empty: no trouble.
 * "text" is copied. Any thread. */
void ebpfMonPublisherSetTrouble(ebpfMonPublisher *publisher, const char *text);

/* Sets the counts of lost events and of failed cross-checks to 0. Any thread. */
void ebpfMonPublisherResetLost(ebpfMonPublisher *publisher);

/* The IOCs that are gone count and are shown no more, from the next second on. Any thread. */
void ebpfMonPublisherAcknowledgeGone(ebpfMonPublisher *publisher);

#endif
