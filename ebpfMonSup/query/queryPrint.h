/* SPDX-License-Identifier: BSD-3-Clause */
/* Queries and their results as text, for the shell. Any thread. */
#ifndef EBPFMON_QUERYPRINT_H
#define EBPFMON_QUERYPRINT_H

#include "common/textReport.h"

/* The list of queries: its titles, then a line for each. "result": its number. */
void ebpfMonQueryPrintBegin(ebpfMonTextReport *report);
void ebpfMonQueryPrintLine(ebpfMonTextReport *report, int result, const char *file);

/* The rows of a result, its histogram as bars, and its last events. */
void ebpfMonQueryPrintResult(ebpfMonTextReport *report, int result);

/* Its stacks, a line for each, as flamegraph.pl reads them. */
void ebpfMonQueryPrintStacks(ebpfMonTextReport *report, int result);

#endif
