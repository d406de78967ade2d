/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The IOCs that match a pattern, for a room that sets probes of its own in them (query/, device/): they come and go. All
 * of it is the one thread's that calls ebpfMonFollowedIocsFollow.
 */
#ifndef EBPFMON_FOLLOWEDIOCS_H
#define EBPFMON_FOLLOWEDIOCS_H

#include "common/worker.h"
#include "watch/target.h"

/* What its user knows of an IOC begins with this. */
typedef struct ebpfMonFollowedIoc {
    struct ebpfMonFollowedIoc *next;
    pid_t    pid;
    uint32_t iocId;
    char     name[EBPFMON_IOCNAME_SIZE];
    int      isOn;    /* its user set its probes */
    uint64_t retryAt; /* … could not: monotonic ns, not before it is asked again */
    int      isWanted, isAlive; /* at the last look; this module's own */
} ebpfMonFollowedIoc;

typedef struct {
    size_t size; /* of what the user knows of an IOC; it begins with 0 everywhere but in its head */
    void (*enter)(void *arg, ebpfMonFollowedIoc *ioc, uint64_t now); /* sets isOn, or retryAt; it may take seconds */
    void (*leave)(void *arg, ebpfMonFollowedIoc *ioc, int hasEnded); /* its process; also of one that is not on */
    void *arg;
} ebpfMonFollowedUser;

typedef struct ebpfMonFollowedIocs ebpfMonFollowedIocs;

ebpfMonFollowedIocs *ebpfMonFollowedIocsNew(const ebpfMonFollowedUser *user); /* NULL without memory */
void ebpfMonFollowedIocsFree(ebpfMonFollowedIocs *iocs); /* leaves all. NULL does no harm */

/* Leaves those that have ended, do not match any more, or are at level off; then enters those that are not on. It gives
 * signs for "worker" (may be NULL). Without memory a new IOC is added at the next call. */
void ebpfMonFollowedIocsFollow(ebpfMonFollowedIocs *iocs, ebpfMonTargets *targets, const char *pattern,
                               ebpfMonWorker *worker);

ebpfMonFollowedIoc *ebpfMonFollowedIocsGetFirst(const ebpfMonFollowedIocs *iocs);

#endif
