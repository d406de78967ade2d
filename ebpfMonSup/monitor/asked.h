/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other threads ask of the target thread: the filter, levels of single IOCs, records whose links were
 * written. Any thread.
 */
#ifndef EBPFMON_ASKED_H
#define EBPFMON_ASKED_H

#include "model/filter.h"
#include "monitor/target.h"

#define EBPFMON_RULES_MAX 64

/* What a command asked for the IOCs that match; of several the newest counts. */
typedef struct {
    char pattern[EBPFMON_PATTERN_SIZE];
    int  level;     /* -1: this rule is about the reference count */
    int  reference; /* -1: this rule is about the level */
} ebpfMonRule;

/* "wake" is called whenever something new was asked. */
void ebpfMonAskedInit(const ebpfMonFilter *first, void (*wake)(void));

/* Returns a number to wait for. */
unsigned ebpfMonAskedFilter(const ebpfMonFilter *filter);
/* Until what has this number is applied to every IOC. 0, or -1: not within that time. */
int ebpfMonAskedWait(unsigned number, double seconds);
void ebpfMonAskedFilterGet(ebpfMonFilter *filter);

/* Both take the place of the rule that this pattern had. Level -1: as the filter says, which cancels every
 * rule of the pattern. 0, or -1: EBPFMON_RULES_MAX are there. */
int ebpfMonAskedLevel(const char *iocPattern, int level);
int ebpfMonAskedReference(const char *iocPattern, int on);
/* The rules in force, oldest first; their number. */
unsigned ebpfMonAskedRules(ebpfMonRule copy[EBPFMON_RULES_MAX]);

void ebpfMonAskedLinks(uint32_t iocId, uint64_t precord); /* links or TSE of a record are being written */

/* --- the target thread's side --- */

/* The filter now; nonzero: it, or a rule, changed since the last call. */
int ebpfMonAskedTake(ebpfMonFilter *filter);
/* What was taken last is applied. */
void ebpfMonAskedDone(void);
ebpfMonLevel ebpfMonAskedLevelOf(const char *ioc, const ebpfMonFilter *filter, int *reference);

/* Nonzero: links of more records were written, since the last call, than can be remembered. */
int ebpfMonAskedLinksMissed(void);

/* Calls "each" for the records whose links are to be read now. Returns seconds until the next one is due. */
double ebpfMonAskedLinksDue(uint64_t now, void (*each)(uint32_t iocId, uint64_t precord));

#endif
