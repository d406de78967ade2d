/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes queries and their results as text, for the shell. Any thread; takes the lock of the results for a copy.
 * "result": the number of a result (query/queryValues.h). */
#ifndef EBPFMON_QUERYPRINT_H
#define EBPFMON_QUERYPRINT_H

#include "common/textReport.h"
#include "query/queryValues.h"

/* Adds the list of queries: first the titles of the columns, then one line for each query. */
void ebpfMonQueryPrintBegin(ebpfMonTextReport *report);
void ebpfMonQueryPrintLine(ebpfMonTextReport *report, ebpfMonQueryResults *results, int result, const char *file);

/* Adds the rows of a result, its histogram as bars, and its last events. */
void ebpfMonQueryPrintResult(ebpfMonTextReport *report, ebpfMonQueryResults *results, int result);

/* Adds the stacks of a result, one line for each stack, in the format of flamegraph.pl. */
void ebpfMonQueryPrintStacks(ebpfMonTextReport *report, ebpfMonQueryResults *results, int result);

#endif
