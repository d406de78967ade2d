/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Follows the IOCs that match a pattern, as they come and go, for a room that sets probes of its own in them (query/,
 * device/). Only the thread that calls ebpfMonFollowedIocsFollow uses this module.
 */
#ifndef EBPFMON_FOLLOWEDIOCS_H
#define EBPFMON_FOLLOWEDIOCS_H

#include "common/worker.h"
#include "watch/target.h"

/* The user's own struct of an IOC begins with this. */
typedef struct ebpfMonFollowedIoc {
    struct ebpfMonFollowedIoc *next;
    pid_t    pid;
    uint32_t iocId;
    char     name[EBPFMON_IOCNAME_SIZE];
    ebpfMonLevel level; /* in force, at the last look */
    int      isOn;    /* its user set its probes */
    uint64_t retryAt; /* its user could not set them: "enter" is called again, not before this time (monotonic ns) */
    int      isWanted, isAlive; /* at the last look; only for this module */
} ebpfMonFollowedIoc;

typedef struct {
    size_t size; /* of the user's own struct of an IOC; behind its head it is zero at first */
    void (*enter)(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now); /* sets isOn, or retryAt; it may take seconds */
    void (*leave)(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded); /* hasEnded: the process; also called if isOn is
                                                                      * 0 */
    void *arg;
} ebpfMonFollowedUser;

typedef struct ebpfMonFollowedIocs ebpfMonFollowedIocs;

ebpfMonFollowedIocs *ebpfMonFollowedIocsNew(const ebpfMonFollowedUser *user); /* NULL without memory */
void ebpfMonFollowedIocsFree(ebpfMonFollowedIocs *iocs); /* leaves all. NULL does no harm */

/* Calls "leave" for IOCs that have ended, do not match any more, or are at level off; then "enter" for IOCs that are
 * not on. Gives signs of progress for "worker" (may be NULL). Without memory a new IOC is added at the next call. */
void ebpfMonFollowedIocsFollow(ebpfMonFollowedIocs *iocs, ebpfMonTargets *targets, const char *pattern,
                               ebpfMonWorker *worker);

ebpfMonFollowedIoc *ebpfMonFollowedIocsGetFirst(const ebpfMonFollowedIocs *iocs);

#endif
