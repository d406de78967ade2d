/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One IOC from the moment when it is found until it is forgotten: starting, running, ended. Only the follower calls
 * these functions.
 */
#ifndef EBPFMON_TARGETLIFE_H
#define EBPFMON_TARGETLIFE_H

#include "common/clock.h"
#include "watch/governor.h"
#include "watch/iocFinder.h"
#include "watch/recordTables.h"
#include "watch/requests.h"

typedef struct {
    ebpfMonTargets *targets;
    ebpfMonRequests *requests;
    ebpfMonRecordTables *tables;
    const ebpfMonGovernor *governor;
    ebpfMonIocFinder *finder;
    void (*changed)(void *arg); /* the list of IOCs changed, or an entry of it */
    void *arg;
    void (*pause)(void *follower); /* called ten times a second while a large database is read (host/memory.h) */
    void *follower;
    int isNested; /* such a call is under way: meanwhile no other large database is read */
} ebpfMonTargetLife;

/* Adds an IOC that was found. If there are EBPFMON_TARGETS_MAX already, another one may lose its place
 * (targetDatabase.h). 0, or -1: there is no place, or no memory. */
int ebpfMonTargetLifeAdopt(const ebpfMonTargetLife *life, pid_t pid, const ebpfMonImage *image);

/* Follows an IOC through its start: reads its database, waits for iocInit. Returns in how many seconds to call it
 * again; HUGE_VAL: the IOC is running. */
double ebpfMonTargetLifeFollowStart(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Nonzero: iocInit is done; also if that was not followed yet. */
int ebpfMonTargetLifeHasStarted(const ebpfMonTarget *t, uint64_t now);

/* Looks for records that were added to a running IOC. */
void ebpfMonTargetLifeFindRecords(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Reads the links again, of the record at this address or of all records, and updates all that depends on them. */
void ebpfMonTargetLifeReadLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t precord);
void ebpfMonTargetLifeReadAllLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* Follows changes that decide whether passes of scan lists can be watched. Once a second. */
void ebpfMonTargetLifeFollowSweeps(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Compares how its records are counted (typeTrial.h). Once a second. */
void ebpfMonTargetLifeTryTypes(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Looks for breakpoints. With a breakpoint, a separate thread processes the lock set, and releases the lock in the
 * middle of a chain (dbBkpt.c): the processings of the chain up to then are not counted. Call it often. */
void ebpfMonTargetLifeFindBreakpoints(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* The clock of the host took such a step since that time (ebpfMonClockStepsLook), which was noticed now. */
void ebpfMonTargetLifeNoteClock(ebpfMonTarget *t, ebpfMonClockStep step, uint64_t since, uint64_t now);

/* If the clock of the host went back, or that of the IOC is ahead of it: all its counts are lower bounds; after one
 * small step those of the records that processed since. Once a second. */
void ebpfMonTargetLifeLookAtClock(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Applies the level that filter, rules and budget say. */
void ebpfMonTargetLifeApply(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* The process has ended, or (isOver 0) runs another program: its probes go; the target stays for a while so that its
 * last events still get their names. */
void ebpfMonTargetLifeEnd(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now, int isOver);

/* Detaches the probes of all IOCs, at the end; waits for the kernel "seconds" at most. */
void ebpfMonTargetLifeDetachAll(const ebpfMonTargetLife *life, double seconds);

/* Removes and frees it. */
void ebpfMonTargetLifeForget(const ebpfMonTargetLife *life, ebpfMonTarget *t);

#endif
