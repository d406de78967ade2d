/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One IOC from the moment it is found until it is forgotten: starting, running, ended. A part of the follower, which
 * alone calls these.
 */
#ifndef EBPFMON_TARGETLIFE_H
#define EBPFMON_TARGETLIFE_H

#include "watch/governor.h"
#include "watch/iocFinder.h"
#include "watch/recordTables.h"
#include "watch/requests.h"

typedef struct {
    ebpfMonTargets *targets;
    ebpfMonRequests *requests;
    ebpfMonRecordTables *tables;
    ebpfMonGovernor *governor;
    ebpfMonIocFinder *finder;
    void (*changed)(void *arg); /* the list of IOCs, or what it says of one, is another one now */
    void *arg;
} ebpfMonTargetLife;

/* Adds the IOC that was found. If there are EBPFMON_TARGETS_MAX already, another may give its place (targetPlace.h). 0, or
 * -1: there is no place, or no memory. */
int ebpfMonTargetLifeAdopt(const ebpfMonTargetLife *life, pid_t pid, const ebpfMonImage *image);

/* Brings an IOC that is starting forward. Returns in how many seconds it wants to be looked at again; HUGE_VAL: it is
 * running. */
double ebpfMonTargetLifeFollowStart(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Looks for records that were added to a running IOC. */
void ebpfMonTargetLifeFindRecords(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Reads the links again, of the record at this address or of all, and what follows from them. */
void ebpfMonTargetLifeReadLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t precord);
void ebpfMonTargetLifeReadAllLinks(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* Passes of scan lists are watched, or could be: follows what changes that. Once a second. */
void ebpfMonTargetLifeFollowSweeps(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Compares how its records are counted (typeTrial.h). Once a second. */
void ebpfMonTargetLifeTryTypes(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* With a breakpoint set, a thread of its own processes the lock set, and gives up the lock in the middle of a chain
 * (dbBkpt.c): what the chain has processed by then is not counted. To be called often. */
void ebpfMonTargetLifeFindBreakpoints(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* Watches it as closely as filter, rules and budget say. */
void ebpfMonTargetLifeApply(const ebpfMonTargetLife *life, ebpfMonTarget *t);

/* The process has ended: its probes go; the target stays for a while so that its last events still get their names. */
void ebpfMonTargetLifeEnd(const ebpfMonTargetLife *life, ebpfMonTarget *t, uint64_t now);

/* Detaches the probes of all, at the end; waits for the kernel at most so long. */
void ebpfMonTargetLifeDetachAll(const ebpfMonTargetLife *life, double seconds);

/* Removes and frees it. */
void ebpfMonTargetLifeForget(const ebpfMonTargetLife *life, ebpfMonTarget *t);

#endif
