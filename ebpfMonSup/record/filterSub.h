/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter records and the filter command, which must not contradict each other. */
#ifndef EBPFMON_FILTERSUB_H
#define EBPFMON_FILTERSUB_H

#include "model/filter.h"

#define EBPFMON_FILTER_INPUTS 9 /* A … I of the filter record, in its order */

/* One input from text, "why" not. 0 or -1. */
int ebpfMonFilterParse(ebpfMonFilter *filter, unsigned input, const char *value, char *why, size_t size);

/* Puts a filter in force, and into the records that the filter record reads. Before iocInit this waits until the filter
 * record processes for the first time; then only these "inputs" (a bit each) are set, and the records keep the others.
 * 0, or -1; "text" for the operator. */
long ebpfMonFilterCommand(const ebpfMonFilter *filter, unsigned inputs, char *text, size_t size);

/* The monitor has started: the filter record processes, and shows what is in force. */
void ebpfMonFilterReprocess(void);

#endif
