/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of other threads to the follower: a filter, levels of single IOCs, records whose links were put. This module
 * has a lock of its own, which is held for a short time. It wakes the follower by a callback. Requests that come before
 * there is a follower wait for it.
 */
#ifndef EBPFMON_REQUESTS_H
#define EBPFMON_REQUESTS_H

#include <stdint.h>

#include "model/filter.h"

typedef struct ebpfMonRequests ebpfMonRequests;

/* The level that a command asked for, for the IOCs that match. If several rules match, the newest one counts. */
typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: this rule is about the reference count */
    int  reference; /* -1: this rule is about the level */
} ebpfMonLevelRule;

/* NULL without memory. */
ebpfMonRequests *ebpfMonRequestsNew(const ebpfMonFilter *first);
void ebpfMonRequestsFree(ebpfMonRequests *requests); /* NULL does no harm */

/* "wake" is called with each new request, by the thread that makes it and under the lock, so it may only wake a thread.
 * NULL: nobody is woken any more. Any thread. */
void ebpfMonRequestsSetWake(ebpfMonRequests *requests, void (*wake)(void *arg), void *arg);

/* --- Any thread --- */

/* Returns a number for ebpfMonRequestsIsApplied, never 0. */
unsigned ebpfMonRequestsSetFilter(ebpfMonRequests *requests, const ebpfMonFilter *filter);

/* Nonzero: the filter with this number is applied to every IOC. */
int ebpfMonRequestsIsApplied(ebpfMonRequests *requests, unsigned number);

void ebpfMonRequestsGetFilter(ebpfMonRequests *requests, ebpfMonFilter *filter);

/* Both replace the rule that this pattern had. Level -1: as the filter says; this cancels every rule of the
 * pattern. 0, or -1: there are EBPFMON_LEVEL_RULES_MAX rules already. */
int ebpfMonRequestsSetLevel(ebpfMonRequests *requests, const char *iocPattern, int level);
int ebpfMonRequestsSetReference(ebpfMonRequests *requests, const char *iocPattern, int on);

/* Copies the rules in force, oldest first; returns their number. */
unsigned ebpfMonRequestsGetLevelRules(ebpfMonRequests *requests, ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX]);

/* A put to a link or to TSE of a record has begun: the follower reads the links of this record again. */
void ebpfMonRequestsAddLinks(ebpfMonRequests *requests, uint32_t iocId, uint64_t precord);

/* --- The follower's side --- */

/* The filter now. Nonzero: it, or a rule, changed since the last call. */
int ebpfMonRequestsTakeFilter(ebpfMonRequests *requests, ebpfMonFilter *filter);

/* The filter and the rules that were taken last are applied to every IOC. */
void ebpfMonRequestsSetApplied(ebpfMonRequests *requests);

/* The level of an IOC by this filter and the rules. *reference: whether its dbProcess is to be trapped, too. */
ebpfMonLevel ebpfMonRequestsFindLevel(ebpfMonRequests *requests, const char *ioc, const ebpfMonFilter *filter,
                                      int *reference);

/* Nonzero: a rule and not the filter decides the level of this IOC. */
int ebpfMonRequestsHasLevelRule(ebpfMonRequests *requests, const char *ioc);

/* Nonzero: since the last call links of more records were put than the list has room for. */
int ebpfMonRequestsTakeLinksMissed(ebpfMonRequests *requests);

/* Calls "each", without the lock, for the records whose links are to be read now (monotonic ns). Returns the seconds
 * until the next one is due. */
double ebpfMonRequestsTakeLinksDue(ebpfMonRequests *requests, uint64_t now,
                                   void (*each)(void *arg, uint32_t iocId, uint64_t precord), void *arg);

#endif
