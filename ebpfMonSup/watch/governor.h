/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaches and detaches the probes of an IOC, for the level that was asked for, as far as its budget allows. Only the
 * follower uses it. Members of a target that other threads read are written under the lock of the targets.
 */
#ifndef EBPFMON_GOVERNOR_H
#define EBPFMON_GOVERNOR_H

#include "probe/calibrate.h"
#include "watch/budget.h"
#include "watch/recordTables.h"
#include "watch/target.h"

/* --- costs ---
 *
 * What watching took from one IOC since the last look, and what else the budget needs to judge it. Only the follower
 * uses this module; it writes only the follower's own part of a target. */

/* What happened since the last look. */
typedef struct {
    double   traps;   /* a second */
    double   cold;    /* as many of them, a second, as if each had found its CPU wholly cold or warm */
    uint64_t strange; /* as EBPFMON_HIT_STRANGE */
} ebpfMonCostSpent;

/* The next sample has what happens from now on ("now": monotonic ns). "hits": of this IOC up to now. */
void ebpfMonCostSampleBegin(ebpfMonTarget *t, const struct ebpfMonHits *hits, uint64_t now);

/* Makes the sample of the time since the last call, or since Begin, and fills "spent". 0: there was neither, so there
 * is no sample. */
int ebpfMonCostSampleTake(const ebpfMonCosts *costs, ebpfMonTarget *t, const ebpfMonFilter *filter,
                          const struct ebpfMonHits *hits, uint64_t now, ebpfMonCostSpent *spent,
                          ebpfMonCostSample *sample);

/* --- levels in force --- */

/* How the governor changes the kernel part, and its clock: the functions of probe/ and common/clock.h, or a test's
 * own. */
typedef struct {
    uint64_t (*now)(void); /* monotonic ns */
    int      (*setTarget)(uint32_t tgid, const struct ebpfMonTargetConf *conf);
    void     (*removeTarget)(uint32_t tgid);
    void     (*removeThreads)(pid_t pid);
    void     (*getHits)(uint32_t tgid, struct ebpfMonHits *hits);
    void     (*watchScheduler)(int on);
    uint32_t (*attach)(ebpfMonAttached *att, uint32_t want, ebpfMonAttachWay way, char *note, size_t size);
} ebpfMonGovernorKernel;

/* What the governor uses; the first three are the caller's. */
typedef struct {
    ebpfMonTargets        *targets;
    ebpfMonRecordTables   *tables;
    const ebpfMonCosts    *costs;  /* what a trap costs here */
    ebpfMonGovernorKernel  kernel;
} ebpfMonGovernor;

/* Notes what was asked for the IOC, then attaches and detaches probes, as its budget and its state allow. */
void ebpfMonGovernorApplyLevel(const ebpfMonGovernor *governor, ebpfMonTarget *t, ebpfMonLevel wanted, int reference,
                               const ebpfMonFilter *filter);

/* Nonzero: it is time to check whether passes of its scan lists can be watched, instead of each chain. */
int ebpfMonGovernorTriesSweeps(const ebpfMonTarget *t, uint64_t now);

/* Begins or ends a turn, if it is time: during a turn the chains of its scan lists are timed. Returns the seconds until
 * the next call is due. */
double ebpfMonGovernorTakeTurn(const ebpfMonGovernor *governor, ebpfMonTarget *t, const ebpfMonFilter *filter,
                               uint64_t now);

/* Measures what watching took from the IOC since the last call (once a second), and compares it with the budget of the
 * filter. Tries the functions of a stripped IOC (target.h). Nonzero: another level may be allowed now; the
 * caller applies it. */
int ebpfMonGovernorCheckBudget(const ebpfMonGovernor *governor, ebpfMonTarget *t, const ebpfMonFilter *filter,
                               uint64_t now);

#endif
