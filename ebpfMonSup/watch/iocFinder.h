/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes may be IOCs: those that were just started, looked at again and again while they load
 * their libraries, and all others, now and then. Target thread, but for Add and Execd.
 */
#ifndef EBPFMON_IOCFINDER_H
#define EBPFMON_IOCFINDER_H

#include "watch/target.h"

typedef struct ebpfMonIocFinder ebpfMonIocFinder;

void ebpfMonIocFinderInit(void);
ebpfMonIocFinder *ebpfMonIocFinderNew(int watchSelf);
void ebpfMonIocFinderFree(ebpfMonIocFinder *finder);

/* A program was started in this process (exec). Any thread. */
void ebpfMonIocFinderNoteExec(pid_t pid);
/* Whether that was so for a process that is a target already; asked once each. */
int ebpfMonIocFinderTakeExec(pid_t pid);

/* The next process that turned out to be an IOC and that "known" does not know, else *pid = 0.
 * Returns in how many seconds to ask again. */
double ebpfMonIocFinderFindNext(ebpfMonIocFinder *finder, uint64_t now, ebpfMonTarget *(*known)(pid_t), pid_t *pid,
                         ebpfMonImage *image);

/* Processes that we were not allowed to look at, in the last complete look at all; the first of them. */
unsigned ebpfMonIocFinderCountDenied(const ebpfMonIocFinder *finder, pid_t *first);

#endif
