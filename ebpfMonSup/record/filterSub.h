/* SPDX-License-Identifier: BSD-3-Clause */
/* The filter record and the filter command, which must not contradict each other. */
#ifndef EBPFMON_FILTERSUB_H
#define EBPFMON_FILTERSUB_H

#include "record/filterInputs.h"

/* Puts a filter in force, and into the records that the filter record reads; waits until it is in force, some seconds
 * at most. Before iocInit the filter waits until the filter record processes for the first time; then only these
 * "inputs" (a bit each) are set, and the records keep the others. 0, or -1; "text" for the operator. Not from a callback
 * thread, and no record may be locked. */
long ebpfMonFilterCommand(const ebpfMonFilter *filter, unsigned inputs, char *text, size_t size);

/* The monitor has started: the filter record processes, and shows what is in force. As above. */
void ebpfMonFilterReprocess(void);

#endif
