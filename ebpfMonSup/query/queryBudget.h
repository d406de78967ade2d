/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The budget of an IOC (FILTER_BUDGET) is for all that is taken from it: by watching and by queries. If both together
 * take more, the queries go first, because no put is to be missed for a question. The query thread only.
 */
#ifndef EBPFMON_QUERYBUDGET_H
#define EBPFMON_QUERYBUDGET_H

#include "query/queryRun.h"

/* Adds up what queries take from each IOC. "run": "count" runs; NULL is none. Call it about once a second. Returns the
 * number of the run that is to be stopped: an IOC was over its budget for ten seconds, and this query takes the most
 * from it. "why" says so. -1: none. Takes the targets lock. */
int ebpfMonQueryBudgetCheck(ebpfMonTargets *targets, ebpfMonQueryRun *const run[], unsigned count, double now,
                            char *why, size_t size);

/* Nonzero: an IOC at which this query would look has used up its budget. "why" says which. Takes the targets lock. */
int ebpfMonQueryBudgetRefuses(ebpfMonTargets *targets, const ebpfMonQuerySpec *spec, char *why, size_t size);

#endif
