/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other threads ask of the target thread: the filter, levels of single IOCs, records whose links were
 * written. Any thread.
 */
#ifndef EBPFMON_REQUESTS_H
#define EBPFMON_REQUESTS_H

#include "model/filter.h"
#include "watch/target.h"

#define EBPFMON_LEVEL_RULES_MAX 64

/* What a command asked for the IOCs that match; of several the newest counts. */
typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: this rule is about the reference count */
    int  reference; /* -1: this rule is about the level */
} ebpfMonLevelRule;

/* "wake" is called whenever something new was asked. */
void ebpfMonRequestsInit(const ebpfMonFilter *first, void (*wake)(void));

/* Returns a number to wait for. */
unsigned ebpfMonRequestsSetFilter(const ebpfMonFilter *filter);
/* Until what has this number is applied to every IOC. 0, or -1: not within that time. */
int ebpfMonRequestsWait(unsigned number, double seconds);
void ebpfMonRequestsGetFilter(ebpfMonFilter *filter);

/* Both take the place of the rule that this pattern had. Level -1: as the filter says, which cancels every
 * rule of the pattern. 0, or -1: EBPFMON_LEVEL_RULES_MAX are there. */
int ebpfMonRequestsSetLevel(const char *iocPattern, int level);
int ebpfMonRequestsSetReference(const char *iocPattern, int on);
/* The rules in force, oldest first; their number. */
unsigned ebpfMonRequestsGetLevelRules(ebpfMonLevelRule copy[EBPFMON_LEVEL_RULES_MAX]);

void ebpfMonRequestsAddLinks(uint32_t iocId, uint64_t precord); /* links or TSE of a record are being written */

/* --- the target thread's side --- */

/* The filter now; nonzero: it, or a rule, changed since the last call. */
int ebpfMonRequestsTakeFilter(ebpfMonFilter *filter);
/* What was taken last is applied. */
void ebpfMonRequestsSetApplied(void);
ebpfMonLevel ebpfMonRequestsFindLevel(const char *ioc, const ebpfMonFilter *filter, int *reference);

/* Nonzero: links of more records were written, since the last call, than can be remembered. */
int ebpfMonRequestsTakeLinksMissed(void);

/* Calls "each" for the records whose links are to be read now. Returns seconds until the next one is due. */
double ebpfMonRequestsTakeLinksDue(uint64_t now, void (*each)(uint32_t iocId, uint64_t precord));

#endif
