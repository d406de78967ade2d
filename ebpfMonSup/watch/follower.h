/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The follower: the thread that finds IOCs, follows them from start to end, and does what other threads request. It
 * finds IOCs when they start, when the monitor starts, and by looking again from time to time.
 */
#ifndef EBPFMON_FOLLOWER_H
#define EBPFMON_FOLLOWER_H

#include <sys/types.h>

#include "watch/governor.h"
#include "watch/iocFinder.h"
#include "watch/recordTables.h"
#include "watch/requests.h"

typedef struct ebpfMonFollower ebpfMonFollower;

/* The follower calls these functions in its own thread, without a lock. */
typedef struct {
    void (*iocsChanged)(void *arg);               /* an IOC came, went, is watched in another way, or has another
                                                   * note */
    void (*trouble)(void *arg, const char *text); /* why IOCs may be missed; "": there is no reason any more */
    void *arg;
} ebpfMonFollowerSink;

/* All arguments must outlive the follower. "watchSelf": our own IOC is watched, too. NULL without memory. */
ebpfMonFollower *ebpfMonFollowerNew(ebpfMonTargets *targets, ebpfMonRequests *requests, ebpfMonRecordTables *tables,
                                    const ebpfMonGovernor *governor, int watchSelf, const ebpfMonFollowerSink *sink);

/* Starts the thread. 0, or -1 without memory. */
int ebpfMonFollowerStart(ebpfMonFollower *follower);

/* Ends the thread, which detaches all probes and forgets all IOCs. 0, or -1: it still runs. */
int ebpfMonFollowerStop(ebpfMonFollower *follower);

/* Only when the thread does not run, and no other thread makes requests any more. NULL does no harm. */
void ebpfMonFollowerFree(ebpfMonFollower *follower);

/* This program was started in this process (exec). Any thread, while the follower is there. */
void ebpfMonFollowerNoteExec(ebpfMonFollower *follower, pid_t pid, const struct ebpfMonProgram *program);

/* Processes that are set aside; see ebpfMonIocFinderGetAside. Any thread, while the follower is there. */
unsigned ebpfMonFollowerGetAside(ebpfMonFollower *follower, ebpfMonAsideProcess *list, unsigned max);

/* The last thread of this process ends, which is an IOC. Any thread. */
void ebpfMonFollowerNoteExit(ebpfMonFollower *follower, pid_t pid);

/* A silence ended (probe/kernelEvents.h): the follower looks at the costs each second again. Any thread. */
void ebpfMonFollowerEndSilence(ebpfMonFollower *follower);

#endif
