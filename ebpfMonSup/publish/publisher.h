/* SPDX-License-Identifier: BSD-3-Clause */
/* The publishing thread. Once a second it copies all counts to the published values. IOCs and STATE are published as
 * soon as they change. In a silence (probe/kernelEvents.h), when also all rates are 0, it looks every
 * EBPFMON_SILENT_NS. */
#ifndef EBPFMON_PUBLISHER_H
#define EBPFMON_PUBLISHER_H

#include <stddef.h>
#include <stdint.h>

#include "ebpfMonEvent.h"
#include "model/audits.h"
#include "model/published.h"
#include "probe/calibrate.h"
#include "search/search.h"
#include "watch/target.h"

/* --- changes of a group ---
 *
 * Finds the groups of the published values that have changed since the last second: only their PVs need to process. A
 * group that has not changed keeps its time, so the time tells since when its values are true. Publishing
 * thread only. */

/* Begin with all 0: no group is known yet. */
typedef struct {
    struct {
        int      isKnown;
        uint64_t hash;
        epicsTimeStamp time;
    } group[ebpfMonGroupCount];
} ebpfMonGroupChanges;

/* Nonzero: the publishing thread writes this group, and its values have changed since the last call. Other groups have
 * other writers, which notify each change themselves. Under the lock of the published values. */
int ebpfMonGroupChangesFind(ebpfMonGroupChanges *changes, ebpfMonPublished *published, ebpfMonGroup group);

/* --- cross-checks ---
 *
 * The results of the cross-checks (model/audits.h) for the PVs AUDIT and AUDIT_CNT.
 */

/* Begin with the audits, and all else 0. Publishing thread only. */
typedef struct {
    ebpfMonAudits *audits; /* the caller's */
    int hasFound; /* nonzero: some check had failed at the last publication */
} ebpfMonAuditText;

/* Publishes the results. Logs a message when the first check fails, and again after a reset. */
void ebpfMonAuditTextPublish(ebpfMonAuditText *text);

/* --- the state ---
 *
 * The state of a monitor that runs, and its text.
 */

typedef struct {
    const char *trouble;      /* trouble of the monitor itself; empty: none */
    unsigned    troubledIocs; /* IOCs that have a trouble in their note … */
    const char *firstTrouble; /* … and the text of the first one */
    unsigned    iocs, watched;
    unsigned    starting;     /* IOCs to be watched whose iocInit is not done, or that are paused … */
    const char *firstStarting; /* … and the name of the first one */
    int         isStartingLong; /* one of them for longer than a minute */
    int         isLooking;    /* not all processes have been looked at yet */
} ebpfMonStateInput;

/* Returns ebpfMonStarting, ebpfMonRunning or ebpfMonDegraded; "text" gets the value of STATE_MSG. Any thread. */
ebpfMonState ebpfMonStateFind(const ebpfMonStateInput *input, char *text, size_t size);

/* --- losses ---
 *
 * The counts of lost events. Their sources only grow; the published counts are those since the last reset.
 */

#define EBPFMON_LOST_ALL (EBPFMON_LOST_KERNEL + ebpfMonLossKinds) /* the reasons of the kernel part, then those of
                                                                   * the user part */

typedef struct ebpfMonLossCounters ebpfMonLossCounters;

/* Reads all counters since the monitor started. A test has a function of its own. Any thread. */
typedef void (*ebpfMonLossRead)(void *arg, uint64_t lost[EBPFMON_LOST_ALL]);

ebpfMonLossCounters *ebpfMonLossCountersNew(ebpfMonLossRead read, void *arg); /* NULL without memory */
void ebpfMonLossCountersFree(ebpfMonLossCounters *counters);

/* The counts begin at 0 again. Any thread. */
void ebpfMonLossCountersReset(ebpfMonLossCounters *counters);

/* Sets published->losses, and notifies nobody. Logs a message when losses begin: for the first time, and after a reset.
 * Publishing thread only. */
void ebpfMonLossCountersPublish(ebpfMonLossCounters *counters);

/* --- the thread --- */

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
