/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other threads ask of the follower: the filter, levels of single IOCs, records whose links were written. Has a
 * lock of its own, which is held for short; the follower is woken by a callback. What is asked before there is a follower
 * waits for it.
 */
#ifndef EBPFMON_REQUESTS_H
#define EBPFMON_REQUESTS_H

#include <stdint.h>

#include "model/filter.h"
#include "watch/linkPuts.h"

typedef struct ebpfMonRequests ebpfMonRequests;

/* What a command asked for the IOCs that match; of several the newest counts. */
typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: this rule is about the reference count */
    int  reference; /* -1: this rule is about the level */
} ebpfMonLevelRule;

/* NULL without memory. */
ebpfMonRequests *ebpfMonRequestsNew(const ebpfMonFilter *first);
void ebpfMonRequestsFree(ebpfMonRequests *requests); /* NULL does no harm */

/* "wake" is called, by the thread that asks and under the lock, whenever something new was asked: it may only wake. NULL:
 * nobody is woken any more. Any thread. */
void ebpfMonRequestsSetWake(ebpfMonRequests *requests, void (*wake)(void *arg), void *arg);

/* --- Any thread --- */

/* Returns a number for ebpfMonRequestsIsApplied, never 0. */
unsigned ebpfMonRequestsSetFilter(ebpfMonRequests *requests, const ebpfMonFilter *filter);

/* Nonzero: the filter with this number is applied to every IOC. */
int ebpfMonRequestsIsApplied(ebpfMonRequests *requests, unsigned number);

void ebpfMonRequestsGetFilter(ebpfMonRequests *requests, ebpfMonFilter *filter);

/* Both take the place of the rule that this pattern had. Level -1: as the filter says; that cancels every rule of the
 * pattern. 0, or -1: EBPFMON_LEVEL_RULES_MAX are there. */
int ebpfMonRequestsSetLevel(ebpfMonRequests *requests, const char *iocPattern, int level);
int ebpfMonRequestsSetReference(ebpfMonRequests *requests, const char *iocPattern, int on);

/* Copies the rules in force, oldest first; returns their number. */
unsigned ebpfMonRequestsGetLevelRules(ebpfMonRequests *requests, ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX]);

/* Links or TSE of a record are being written: its links are to be read again. */
void ebpfMonRequestsAddLinks(ebpfMonRequests *requests, const ebpfMonLinkPut *put);

/* --- The follower's side --- */

/* The filter now. Nonzero: it, or a rule, changed since the last call. */
int ebpfMonRequestsTakeFilter(ebpfMonRequests *requests, ebpfMonFilter *filter);

/* What was taken last is applied to every IOC. */
void ebpfMonRequestsSetApplied(ebpfMonRequests *requests);

/* The level of an IOC by this filter and the rules, and whether its dbProcess is to be trapped too. */
ebpfMonLevel ebpfMonRequestsFindLevel(ebpfMonRequests *requests, const char *ioc, const ebpfMonFilter *filter,
                                      int *reference);

/* Nonzero: a rule says the level of this IOC, and not the filter. */
int ebpfMonRequestsHasLevelRule(ebpfMonRequests *requests, const char *ioc);

/* The puts that were added; they have a lock of their own. */
ebpfMonLinkPuts *ebpfMonRequestsGetLinkPuts(ebpfMonRequests *requests);

/* Nonzero: since the last call links of more records were written than the list holds. */
int ebpfMonRequestsTakeLinksMissed(ebpfMonRequests *requests);

/* Calls "each", without the lock, for the records whose links are to be read now (monotonic ns). Returns the seconds
 * until the next one is due. */
double ebpfMonRequestsTakeLinksDue(ebpfMonRequests *requests, uint64_t now,
                                   void (*each)(void *arg, uint32_t iocId, uint64_t precord), void *arg);

#endif
